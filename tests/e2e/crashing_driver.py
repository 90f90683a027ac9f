"""A driver of the story that sends itself a signal at a named point: SIGKILL to die there, SIGSTOP to freeze.

`python -m tests.e2e.crashing_driver HOME [SIGNAL POINT NTH]`; without a signal it drains the story to its end.
"""

import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

from spark_jobs.errors import TidemarkError
from spark_jobs.jobs.live_batches import ignore
from spark_jobs.jobs.stream_live_metrics import LiveMetricsSettings, run
from spark_jobs.session import open_session
from tests.e2e.story import BETWEEN_LOGS, Trap, checkpoint_of, newest_entry, spec_of_story


def die() -> None:
    """Python and the JVM at once, as when a machine falls: the driver leads a process group of its own."""
    os.killpg(os.getpgrp(), signal.SIGKILL)


def freeze() -> None:
    """Only Python: the JVM waits for it, as long as it takes."""
    os.kill(os.getpid(), signal.SIGSTOP)


def watch(home: Path, moment: str, nth: int) -> None:
    """Die once Spark has written the log, for the nth time in this run, and before it writes the next one."""
    checkpoint = checkpoint_of(home)
    offsets, commits, source = (checkpoint / name for name in ("offsets", "commits", "sources/0"))
    if moment == "after commit log":
        wanted = newest_entry(commits) + nth
        while newest_entry(commits) < wanted:
            time.sleep(0.0005)
    else:
        while newest_entry(source) < nth or newest_entry(source) <= newest_entry(offsets):
            time.sleep(0.0001)
    die()


def main(home: Path, name: str = "", point: str = "", nth: str = "1") -> int:
    settings = LiveMetricsSettings(home=home, spec=spec_of_story(), drain=True)
    reached: Callable[[str], None] = ignore
    if point in BETWEEN_LOGS:
        threading.Thread(target=watch, args=(home, point, int(nth)), daemon=True).start()
    elif point:
        reached = Trap(point, int(nth), {"SIGKILL": die, "SIGSTOP": freeze}[name])
    try:
        run(open_session(settings.spec, home), settings, reached=reached)
    except TidemarkError as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    code = main(Path(sys.argv[1]), *sys.argv[2:])
    sys.stderr.flush()
    os._exit(code)  # the JVM ends when its standard input closes
