"""The single next step that moves a job toward its spec. Pure: no clock, no file, no process."""

from datetime import datetime

from include.lifecycle.model import (
    Action,
    AskToStop,
    Decision,
    Deploy,
    GiveUp,
    Incident,
    JobPhase,
    Kill,
    NoteFailure,
    Observation,
    Wait,
    Wish,
)
from include.lifecycle.restart import explain, next_start
from spark_jobs.settings import JobSpec

TRANSITIONS: dict[JobPhase, dict[str, frozenset[JobPhase]]] = {
    JobPhase.CREATED: {"Deploy": frozenset({JobPhase.STARTING})},
    JobPhase.STARTING: {
        "Wait": frozenset({JobPhase.RUNNING, JobPhase.STALLED, JobPhase.FAILING, JobPhase.STOPPING}),
    },
    JobPhase.RUNNING: {
        "Wait": frozenset(
            {JobPhase.STALLED, JobPhase.FAILING, JobPhase.STOPPING, JobPhase.FINISHED, JobPhase.RESTARTING}
        ),
    },
    JobPhase.STALLED: {"Kill": frozenset({JobPhase.RESTARTING})},
    JobPhase.FAILING: {"NoteFailure": frozenset({JobPhase.RESTARTING})},
    JobPhase.RESTARTING: {
        "Wait": frozenset({JobPhase.RESTARTING}),
        "Deploy": frozenset({JobPhase.STARTING}),
        "GiveUp": frozenset({JobPhase.FAILED}),
    },
    JobPhase.STOPPING: {
        "AskToStop": frozenset({JobPhase.STOPPING}),
        "Wait": frozenset({JobPhase.SUSPENDED, JobPhase.CANCELLED, JobPhase.RESTARTING}),
        "Kill": frozenset({JobPhase.SUSPENDED, JobPhase.CANCELLED, JobPhase.RESTARTING}),
    },
    JobPhase.SUSPENDED: {"Wait": frozenset({JobPhase.CREATED, JobPhase.RESTARTING, JobPhase.CANCELLED})},
    JobPhase.CANCELLED: {"Wait": frozenset({JobPhase.CREATED, JobPhase.RESTARTING})},
    JobPhase.FINISHED: {"Wait": frozenset({JobPhase.RESTARTING, JobPhase.SUSPENDED, JobPhase.CANCELLED})},
    JobPhase.FAILED: {"Wait": frozenset({JobPhase.RESTARTING, JobPhase.SUSPENDED, JobPhase.CANCELLED})},
}
"""What may be done in each phase, and the phases that may follow; docs/lifecycle.md shows the same table."""


def decide(spec: JobSpec, fingerprint: str, seen: Observation) -> Decision:
    return _of_living(spec, fingerprint, seen) if seen.is_alive else _of_ended(spec, seen)


def _of_living(spec: JobSpec, fingerprint: str, seen: Observation) -> Decision:
    if unwanted := _why_stop(fingerprint, seen):
        return Decision(JobPhase.STOPPING, _stop(spec, seen, unwanted))
    if stalled := _why_stalled(spec, seen):
        return Decision(JobPhase.STALLED, Kill(stalled, is_failure=True))
    if seen.heartbeat is None:
        return Decision(JobPhase.STARTING, Wait("waiting for the first heartbeat"))
    return Decision(JobPhase.RUNNING, Wait(seen.refusal or _pace(seen)))


def _why_stop(fingerprint: str, seen: Observation) -> str | None:
    desired, process = seen.desired, seen.process
    assert process is not None
    if desired.state is not Wish.RUNNING:
        return f"{desired.state}: {desired.reason}" if desired.reason else str(desired.state)
    if desired.restart_before is not None and process.started_at < desired.restart_before:
        return f"restart: {desired.reason}" if desired.reason else "restart"
    if process.fingerprint != fingerprint and seen.refusal is None:
        return "the spec has changed"
    return None


def _stop(spec: JobSpec, seen: Observation, why: str) -> Action:
    if seen.stop_asked_at is None:
        return AskToStop(why)
    within = spec.supervise.stop_within
    if seen.now - seen.stop_asked_at > within:
        return Kill(f"did not stop within {within}: {why}", is_failure=False)
    return Wait(f"stopping ({why})", seconds=0.2)


def _why_stalled(spec: JobSpec, seen: Observation) -> str | None:
    patience, heartbeat = spec.supervise.stall_after, seen.heartbeat
    assert seen.process is not None
    if heartbeat is None:
        silent = seen.now - seen.process.started_at
        return f"no heartbeat {silent.total_seconds():.0f} s after its start" if silent > patience else None
    if (silent := seen.now - heartbeat.at) > patience:
        return f"no heartbeat for {silent.total_seconds():.0f} s"
    if heartbeat.in_hand_since is not None and (held := seen.now - heartbeat.in_hand_since) > patience:
        return f"one batch in hand for {held.total_seconds():.0f} s"
    return None


def _pace(seen: Observation) -> str:
    assert seen.heartbeat is not None
    return "the source has nothing new" if seen.heartbeat.in_hand_since is None else "batches move"


def _of_ended(spec: JobSpec, seen: Observation) -> Decision:
    desired = seen.desired
    if desired.state is not Wish.RUNNING:
        phase = JobPhase.SUSPENDED if desired.state is Wish.SUSPENDED else JobPhase.CANCELLED
        return Decision(phase, Wait(desired.reason or f"a person asked for {desired.state}"))
    if seen.process is None:
        return Decision(JobPhase.CREATED, Deploy("first start"))
    if _has_failed(seen):
        return _after_failure(spec, seen)
    if seen.stop_asked_at is not None:
        return Decision(JobPhase.RESTARTING, Deploy("stopped as asked"))
    if desired.restart_before is not None and seen.process.started_at < desired.restart_before:
        return Decision(JobPhase.RESTARTING, Deploy(desired.reason or "restart"))
    if seen.ended is not None and seen.ended.code == 0:
        if seen.ended.is_finished and (desired.since is None or desired.since < seen.ended.at):
            return Decision(JobPhase.FINISHED, Wait(seen.ended.reason))
        return Decision(JobPhase.RESTARTING, Deploy("ended from outside, and wanted"))
    why = seen.ended.reason if seen.ended else "the process is gone and left no word: killed, or out of memory"
    return Decision(JobPhase.FAILING, NoteFailure(why))


def _after_failure(spec: JobSpec, seen: Observation) -> Decision:
    failures = _failures(seen)
    if any(incident.kind == "gave up" for incident in _since_cleared(seen)):
        return Decision(JobPhase.FAILED, Wait(_last(seen, "gave up")))
    if not failures:  # cleared since
        return Decision(JobPhase.RESTARTING, Deploy("a person cleared the failures"))
    start = next_start(spec.restart, failures)
    why = _last(seen, "failure")
    if start is None:
        return Decision(JobPhase.RESTARTING, GiveUp(f"{explain(spec.restart, failures)}; last: {why}"))
    if seen.now < start:
        left = (start - seen.now).total_seconds()
        return Decision(JobPhase.RESTARTING, Wait(f"starts again in {left:.0f} s; {why}", seconds=min(1.0, left)))
    return Decision(JobPhase.RESTARTING, Deploy(f"after a failure: {why}"))


def _since_cleared(seen: Observation) -> list[Incident]:
    """The incidents since a person last let the job begin anew."""
    cleared = [number for number, incident in enumerate(seen.incidents) if incident.kind == "cleared"]
    return list(seen.incidents[cleared[-1] + 1 :] if cleared else seen.incidents)


def _failures(seen: Observation) -> list[datetime]:
    return [incident.at for incident in _since_cleared(seen) if incident.kind == "failure"]


def _has_failed(seen: Observation) -> bool:
    """Whether the failure of the process last seen is noted."""
    return any(incident.kind == "failure" and incident.process == seen.process_id for incident in seen.incidents)


def _last(seen: Observation, kind: str) -> str:
    return next((incident.why for incident in reversed(seen.incidents) if incident.kind == kind), "")
