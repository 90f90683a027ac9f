"""What an event is, which class it falls in, and why a row is kept out."""

from dataclasses import dataclass
from enum import StrEnum

EVENT_FIELDS = ("event_at", "visitor_id", "item_id", "category_id", "action", "event_id", "properties")
"""What a spec says about a row of its log, each by an expression."""


class Arrival(StrEnum):
    """When an event came, seen from the watermark that held before its batch."""

    ON_TIME = "on_time"  # at or above the watermark
    LATE = "late"  # below it, within the allowed lateness: counted, windows get a new revision
    TOO_LATE = "too_late"  # kept in events, not in live numbers; settling counts it


class Reason(StrEnum):
    """Why a row is in quarantine, in the order of the checks."""

    MALFORMED = "malformed"
    RULE = "rule"
    FUTURE = "future"


@dataclass(frozen=True)
class Fault:
    """Why a row cannot become an event; rows carry its number."""

    reason: Reason
    detail: str


CLASSES = ("on_time", "late", "too_late", "duplicate", "quarantined")
"""Every row read is in exactly one: read = on_time + late + too_late + duplicate + quarantined."""
