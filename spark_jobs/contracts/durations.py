"""Durations as people write them: `10 seconds`, `1 hour 30 minutes`, `100 ms`."""

import re
from datetime import timedelta

_UNITS = {
    "millisecond": timedelta(milliseconds=1),
    "ms": timedelta(milliseconds=1),
    "second": timedelta(seconds=1),
    "s": timedelta(seconds=1),
    "minute": timedelta(minutes=1),
    "min": timedelta(minutes=1),
    "hour": timedelta(hours=1),
    "h": timedelta(hours=1),
    "day": timedelta(days=1),
    "d": timedelta(days=1),
    "week": timedelta(weeks=1),
}
_PART = re.compile(r"(\d+(?:\.\d+)?)\s*([a-z]+)\s*")
EXAMPLES = "10 seconds, 5 minutes, 1 hour 30 minutes, 100 ms"


def parse_duration(text: str) -> timedelta:
    """The duration that `text` names; ValueError tells what a duration looks like."""
    rest, total, parts = text.strip().lower(), timedelta(), 0
    while rest:
        found = _PART.match(rest)
        unit = _UNITS.get(found[2]) or _UNITS.get(found[2].removesuffix("s")) if found else None
        if not found or unit is None:
            raise ValueError(f"{text!r} is not a duration; write it like {EXAMPLES}")
        try:
            total += float(found[1]) * unit
        except OverflowError:
            raise ValueError(f"{text!r} is longer than any clock counts; write it like {EXAMPLES}") from None
        rest = rest[found.end() :]
        parts += 1
    if not parts:
        raise ValueError(f"an empty text is not a duration; write it like {EXAMPLES}")
    return total


def format_duration(value: timedelta) -> str:
    """The shortest exact way to write `value`: `90 minutes`, `1 day`."""
    micros = value // timedelta(microseconds=1)
    for name in ("week", "day", "hour", "minute", "second", "millisecond"):
        size = _UNITS[name] // timedelta(microseconds=1)
        if micros and micros % size == 0:
            count = micros // size
            return f"{count} {name}{'' if count == 1 else 's'}"
    return f"{micros / 1_000_000:.6f} seconds" if micros else "0 seconds"
