"""The words of a job's life: what we want, what we saw, what we do next."""

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum


class JobPhase(StrEnum):
    CREATED = "created"  # known, never started
    STARTING = "starting"  # the driver lives; no batch and no idle source seen yet
    RUNNING = "running"  # batches move, or the source has nothing new
    STALLED = "stalled"  # the driver lives, yet its batch or its heartbeat stands still
    FAILING = "failing"  # the driver ended and nobody asked it to
    RESTARTING = "restarting"  # the failure is noted; the next start waits for its delay
    STOPPING = "stopping"  # asked to stop; the batch in hand is being finished
    SUSPENDED = "suspended"  # stopped by a person, to go on later
    CANCELLED = "cancelled"  # stopped by a person, for good
    FINISHED = "finished"  # the driver used up its input and ended by itself
    FAILED = "failed"  # the restart strategy gave up; `resume` clears it


class Wish(StrEnum):
    """What a person wants of a job."""

    RUNNING = "running"
    SUSPENDED = "suspended"
    CANCELLED = "cancelled"


@dataclass(frozen=True)
class Desired:
    """`desired.json`; a driver that started before `restart_before` is to be replaced."""

    state: Wish = Wish.RUNNING
    reason: str = ""
    since: datetime | None = None
    restart_before: datetime | None = None


@dataclass(frozen=True)
class Process:
    """`process.json`: with its start time a pid names a process for good."""

    pid: int
    started: int  # clock ticks since boot
    started_at: datetime
    fingerprint: str
    host: str = ""


@dataclass(frozen=True)
class Heartbeat:
    """The part of `progress.json` that tells whether the stream moves."""

    at: datetime
    batch: int | None
    in_hand_since: datetime | None  # None while the source has nothing new


@dataclass(frozen=True)
class Ended:
    """The last words of a driver that ended by itself; `is_finished` where its input was used up."""

    at: datetime
    code: int
    reason: str
    is_finished: bool


@dataclass(frozen=True)
class Incident:
    """One line of `incidents.jsonl`."""

    at: datetime
    kind: str  # deployed | failure | gave up | cleared | phase | asked
    why: str
    process: str = ""
    phase: str = ""


@dataclass(frozen=True)
class Observation:
    """What was seen of a job at `now`; nothing in it is decided yet."""

    now: datetime
    desired: Desired
    process: Process | None = None
    is_alive: bool = False
    heartbeat: Heartbeat | None = None
    ended: Ended | None = None
    stop_asked_at: datetime | None = None
    refusal: str | None = None  # why the spec as it is now cannot continue the running job
    incidents: tuple[Incident, ...] = field(default=())

    @property
    def process_id(self) -> str:
        return f"{self.process.pid}-{self.process.started}" if self.process else ""


@dataclass(frozen=True)
class Wait:
    """Nothing to do now; look again within `seconds`."""

    why: str
    seconds: float = 1.0


@dataclass(frozen=True)
class Deploy:
    reason: str


@dataclass(frozen=True)
class AskToStop:
    reason: str


@dataclass(frozen=True)
class Kill:
    """The hard way; `is_failure` where the driver is to blame."""

    reason: str
    is_failure: bool


@dataclass(frozen=True)
class NoteFailure:
    reason: str


@dataclass(frozen=True)
class GiveUp:
    reason: str


def why(action: "Action") -> str:
    return action.why if isinstance(action, Wait) else action.reason


Action = Wait | Deploy | AskToStop | Kill | NoteFailure | GiveUp


@dataclass(frozen=True)
class Decision:
    phase: JobPhase
    action: Action
