"""The process of a driver: started apart from its starter, known by pid and start time, ended with all its own."""

import fcntl
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime

from include.errors import UsageError
from include.lifecycle.model import Process
from include.settings import PROJECT
from spark_jobs.contracts.layout import Layout
from spark_jobs.jobs.ticker import shorten
from spark_jobs.settings import JobSpec
from spark_jobs.sinks.json_files import write_json
from spark_jobs.sinks.processes import identity, start_ticks

DEATH_SECONDS = 10.0


def is_alive(process: Process) -> bool:
    """Whether the very process runs; a pid that another process has now is not it, nor is one that only waits to be
    buried."""
    _reap(process.pid)
    return start_ticks(process.pid) == process.started


def start_driver(layout: Layout, spec: JobSpec, fingerprint: str) -> Process:
    """Start the stream's driver in a session of its own; its output goes to `driver.log`."""
    layout.job_home.mkdir(parents=True, exist_ok=True)
    body = {"home": str(layout.home), "spec": spec.model_dump(mode="json", by_alias=True, exclude_none=True)}
    write_json(layout.settings_file, body)
    shorten(layout.log_file)
    with layout.log_file.open("ab") as log:
        driver = subprocess.Popen(
            [sys.executable, "-m", "spark_jobs.jobs.stream_live_metrics", str(layout.settings_file)],
            cwd=PROJECT,
            env=os.environ | {"PYTHONPATH": str(PROJECT)},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    found = identity(driver.pid, fingerprint)
    write_json(layout.process_file, found, durable=True)
    return Process(driver.pid, found["started"], datetime.fromisoformat(found["started_at"]), fingerprint)


def kill_driver(process: Process) -> None:
    """The hard way: the driver and everything in its session, frozen or not; returns when it is gone."""
    if not is_alive(process):
        return
    with suppress(ProcessLookupError):
        if os.getpgid(process.pid) == process.pid:
            os.killpg(process.pid, signal.SIGKILL)
        else:  # in the foreground, where the group is its terminal's
            os.kill(process.pid, signal.SIGKILL)
    deadline = time.monotonic() + DEATH_SECONDS
    while is_alive(process):
        if time.monotonic() > deadline:
            raise UsageError(f"process {process.pid} does not die: look at it with `ps -o stat,wchan -p {process.pid}`")
        time.sleep(0.02)


@contextmanager
def only_one(layout: Layout) -> Iterator[None]:
    """Whoever changes a job's process waits here for the one who does so already."""
    layout.job_home.mkdir(parents=True, exist_ok=True)
    with (layout.job_home / "act.lock").open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _reap(pid: int) -> None:
    """Bury the process if it is a dead child of ours."""
    with suppress(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)
