"""Carries an action out; doing it again changes nothing more."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Protocol

from include.lifecycle.incidents import append_incident
from include.lifecycle.model import (
    AskToStop,
    Decision,
    Deploy,
    GiveUp,
    Incident,
    Kill,
    NoteFailure,
    Observation,
    Process,
    Wait,
    why,
)
from spark_jobs.contracts.layout import Layout
from spark_jobs.settings import JobSpec
from spark_jobs.sinks.json_files import write_json
from spark_jobs.sinks.processes import stop_id


class Drivers(Protocol):
    """Where drivers live: this machine, or an imitation of one."""

    def start(self, layout: Layout, spec: JobSpec, fingerprint: str) -> Process: ...
    def kill(self, process: Process) -> None: ...


@dataclass(frozen=True)
class Hands:
    """What acting on one job takes."""

    layout: Layout
    spec: JobSpec
    fingerprint: str
    drivers: Drivers


def act(hands: Hands, seen: Observation, decision: Decision) -> None:
    if (last := _last_phase(seen)) != decision.phase:
        _note(hands, "phase", why(decision.action), phase=str(decision.phase), was=last)
    match decision.action:
        case Deploy(reason):
            process = hands.drivers.start(hands.layout, hands.spec, hands.fingerprint)
            _note(hands, "deployed", reason, process=f"{process.pid}-{process.started}")
        case AskToStop(reason):
            ask_to_stop(hands.layout, seen, reason)
        case Kill(reason, is_failure):
            assert seen.process is not None
            if is_failure:
                _note(hands, "failure", reason, process=seen.process_id)
            hands.drivers.kill(seen.process)
        case NoteFailure(reason):
            _note(hands, "failure", reason, process=seen.process_id)
        case GiveUp(reason):
            _note(hands, "gave up", reason, process=seen.process_id)
        case Wait():
            pass


def ask_to_stop(layout: Layout, seen: Observation, reason: str) -> None:
    assert seen.process is not None
    name = stop_id(seen.process.pid, seen.process.started)
    write_json(layout.inbox / f"{name}.json", {"id": name, "kind": "stop", "reason": reason}, durable=True)


def _last_phase(seen: Observation) -> str:
    return next((incident.phase for incident in reversed(seen.incidents) if incident.kind == "phase"), "")


def _note(hands: Hands, kind: str, told: str, process: str = "", phase: str = "", was: str = "") -> None:
    reason = f"{told} (was {was})" if was else told
    append_incident(hands.layout.incidents_file, Incident(datetime.now(UTC), kind, reason, process, phase))
