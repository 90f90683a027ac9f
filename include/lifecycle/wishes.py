"""What a person asks of a job: written down with a reason, carried out by whoever supervises it."""

from datetime import UTC, datetime

from include.errors import UsageError
from include.lifecycle.incidents import append_incident
from include.lifecycle.model import Desired, Incident, Wish
from include.lifecycle.observe import read_desired
from spark_jobs.contracts.layout import Layout
from spark_jobs.sinks.json_files import write_json


def suspend(layout: Layout, reason: str) -> None:
    if read_desired(layout).state is Wish.CANCELLED:
        raise UsageError(f"job {layout.job} is cancelled; deploy it first")
    _write(layout, Desired(Wish.SUSPENDED, reason))


def resume(layout: Layout, reason: str) -> None:
    """Also forgets the failures so far, so that a strategy which gave up begins anew."""
    if read_desired(layout).state is Wish.CANCELLED:
        raise UsageError(f"job {layout.job} is cancelled; `tidemark job deploy {layout.job}` starts it again")
    deploy(layout, reason)


def deploy(layout: Layout, reason: str) -> None:
    _write(layout, Desired(Wish.RUNNING, reason))
    append_incident(layout.incidents_file, Incident(datetime.now(UTC), "cleared", reason or "a person asked for it"))


def cancel(layout: Layout, reason: str) -> None:
    _write(layout, Desired(Wish.CANCELLED, reason))


def restart(layout: Layout, reason: str) -> None:
    deploy(layout, reason)
    _write(layout, Desired(Wish.RUNNING, reason, restart_before=datetime.now(UTC)))


def _write(layout: Layout, desired: Desired) -> None:
    now = datetime.now(UTC)
    before = desired.restart_before
    write_json(
        layout.desired_file,
        {
            "state": str(desired.state),
            "reason": desired.reason,
            "since": now.isoformat(),
            "restart_before": before.isoformat() if before else None,
        },
        durable=True,
    )
    word = "restart" if before else str(desired.state)
    append_incident(layout.incidents_file, Incident(now, "asked", f"{word}: {desired.reason}"))
