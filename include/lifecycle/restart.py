"""Restart strategies as data: whether a job may start again after its failures, and when."""

import itertools
from collections.abc import Sequence
from datetime import datetime, timedelta

from spark_jobs.settings import RestartSection

Failures = Sequence[datetime]
"""When the job failed since a person last cleared it, oldest first."""


def next_start(restart: RestartSection, failures: Failures) -> datetime | None:
    """The earliest time of the next start; None where the strategy gives up. There is at least one failure."""
    last = failures[-1]
    match restart.strategy:
        case "none":
            return None
        case "fixed_delay":
            return last + restart.delay if len(failures) <= restart.attempts else None
        case "failure_rate":
            recent = [at for at in failures if at > last - restart.interval]
            return last + restart.delay if len(recent) <= restart.max_failures else None
        case "exponential":
            return last + _growing_delay(restart, failures)


def _growing_delay(restart: RestartSection, failures: Failures) -> timedelta:
    """From `initial` on, larger with each failure that followed the one before within `reset_after`."""
    delay = restart.initial
    for before, after in itertools.pairwise(failures):
        delay = restart.initial if after - before > restart.reset_after else delay * restart.multiplier
        delay = min(delay, restart.max)
    return min(delay, restart.max)


def explain(restart: RestartSection, failures: Failures) -> str:
    """Why the strategy gives up, in words."""
    match restart.strategy:
        case "fixed_delay":
            return f"{len(failures)} failures; fixed_delay allows {restart.attempts} restarts"
        case "failure_rate":
            recent = [at for at in failures if at > failures[-1] - restart.interval]
            return f"{len(recent)} failures within {restart.interval}; failure_rate allows {restart.max_failures}"
        case _:
            return f"strategy {restart.strategy} restarts no job"
