"""Drivers as processes of their own, started and buried by tests."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]
PATIENCE_SECONDS = 180
SHORT_LIFE = "-XX:TieredStopAtLevel=1"
"""A JVM that is killed after a batch or two does not live to see the gain of the second compiler."""


def start_driver(home: Path, *arguments: object) -> subprocess.Popen[str]:
    """A driver in a session of its own, so that all of it can be found and killed."""
    return subprocess.Popen(
        [sys.executable, "-m", "tests.e2e.crashing_driver", str(home), *map(str, arguments)],
        cwd=PROJECT,
        env=os.environ | {"JDK_JAVA_OPTIONS": SHORT_LIFE},
        start_new_session=True,
        text=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )


def end_of(driver: subprocess.Popen[str]) -> tuple[int, str]:
    """The driver's exit code and last words, once nothing of its session is left."""
    try:
        _, words = driver.communicate(timeout=PATIENCE_SECONDS)
    finally:
        if driver.poll() is None:
            os.killpg(driver.pid, signal.SIGKILL)
    while _session_lives(driver.pid):
        time.sleep(0.02)
    return driver.returncode, words


def _session_lives(leader: int) -> bool:
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, _, session = stat.read_text().rpartition(")")[2].split()[:4]
        except OSError:
            continue
        if int(session) == leader and state != "Z":
            return True
    return False
