"""What a command costs, with everything it starts: wall and CPU seconds, peak memory.

A command runs under a watcher process of its own (`python -m benchmarks.measure RESULT LOG COMMAND…`): the watcher's
children are this command's processes and no others, also those that outlive their parent.
"""

import ctypes
import json
import os
import resource
import signal
import subprocess
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

SAMPLE_SECONDS = 0.2
NOTABLE_GROWTH = 1.03
LINGER_SECONDS = 15.0
"""So long may processes outlive the command before they are ended."""
_PR_SET_CHILD_SUBREAPER = 36
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


class CommandFailed(Exception):
    """A measured command ended with an error; the message ends with the last lines it wrote."""


@dataclass(frozen=True)
class Cost:
    """Memory is that of all processes together, memory they share counted once."""

    wall_seconds: float
    cpu_seconds: float
    peak_bytes: int
    others_cpu_seconds: float  # of everything else on the machine meanwhile: small, or the times mean little


def measure(command: Sequence[str], folder: Path, environment: Mapping[str, str] | None = None) -> Cost:
    """Run `command`; its output goes to `folder/output.log`, its cost also to `folder/cost.json`."""
    folder.mkdir(parents=True, exist_ok=True)
    result, log = folder / "cost.json", folder / "output.log"
    watcher = [sys.executable, "-m", "benchmarks.measure", str(result), str(log), *command]
    ended = subprocess.run(watcher, env={**os.environ, **(environment or {})}, check=False)
    if ended.returncode:
        raise CommandFailed(f"{' '.join(command)} ended with {ended.returncode}:\n{tail(log)}")
    return Cost(**json.loads(result.read_text(encoding="utf-8")))


def tail(log: Path, lines: int = 15) -> str:
    return "\n".join(log.read_text(encoding="utf-8", errors="replace").splitlines()[-lines:])


class _PeakMemory(threading.Thread):
    """The highest memory of all descendants of this process, sampled until `stop` is called.

    The resident sizes are cheap to read and rise with the exact figure. That one takes the kernel tens of milliseconds
    for each gigabyte, in which the process cannot map memory: it is read only at a notable new high.
    """

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.peak_bytes = 0
        self._highest_resident = 0
        self._stopped = threading.Event()

    def run(self) -> None:
        while not self._stopped.wait(SAMPLE_SECONDS):
            processes = list(_descendants(os.getpid()))
            resident = sum(_resident_bytes(pid) for pid in processes)
            if resident > self._highest_resident * NOTABLE_GROWTH:
                self._highest_resident = resident
                self.peak_bytes = max(self.peak_bytes, sum(_proportional_bytes(pid) for pid in processes))

    def stop(self) -> int:
        self._stopped.set()
        self.join()
        return self.peak_bytes


def _descendants(root: int) -> Iterator[int]:
    children: defaultdict[int, list[int]] = defaultdict(list)
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            with suppress(OSError):
                children[_parent(int(entry))].append(int(entry))
    found = children[root]
    while found:
        yield from found
        found = [grandchild for child in found for grandchild in children[child]]


def _parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()[1])


def _resident_bytes(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1]) * _PAGE_BYTES
    except OSError:
        return 0


def _proportional_bytes(pid: int) -> int:
    """The process's own memory and its share of what it has in common with others."""
    try:
        rollup = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii")
    except OSError:
        return _resident_bytes(pid)
    return next((int(line.split()[1]) << 10 for line in rollup.splitlines() if line.startswith("Pss:")), 0)


def _watch(command: Sequence[str], log: Path) -> tuple[int, Cost]:
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    memory = _PeakMemory()
    memory.start()
    busy_before = _busy_seconds()
    with log.open("wb") as output:
        started = time.monotonic()
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
        try:
            code = process.wait()
        finally:
            wall = time.monotonic() - started
            _outlast()
    busy = _busy_seconds() - busy_before
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = used.ru_utime + used.ru_stime
    return code, Cost(wall, cpu, memory.stop(), max(0.0, busy - cpu))


def _busy_seconds() -> float:
    """CPU seconds of the whole machine since it started, in user and system mode."""
    user, nice, system = Path("/proc/stat").read_text(encoding="ascii").split()[1:4]
    return (int(user) + int(nice) + int(system)) / os.sysconf("SC_CLK_TCK")


def _outlast() -> None:
    """Wait for processes that are left over, so that their CPU time counts; end those that stay."""
    deadline = time.monotonic() + LINGER_SECONDS
    while left := list(_descendants(os.getpid())):
        if time.monotonic() > deadline:
            for pid in left:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        with suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        time.sleep(0.02)


def main(arguments: Sequence[str]) -> int:
    result, log, *command = arguments
    code, cost = _watch(command, Path(log))
    Path(result).write_text(json.dumps(asdict(cost)), encoding="utf-8")
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
