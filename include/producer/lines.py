"""Clicks as lines of CSV, and the lines that no reader can take apart."""

from collections.abc import Callable, Iterable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from include.producer.clicks import BEHAVIORS, Clicks

COLUMNS = ("user_id", "item_id", "category_id", "behavior", "ts")
EVENT_ID = "event_id"
_TEXT = "unknown"


def header_line(event_ids: bool) -> bytes:
    return ",".join((*COLUMNS, EVENT_ID) if event_ids else COLUMNS).encode() + b"\n"


def to_lines(clicks: Clicks, id_prefix: str | None) -> pa.StringArray:
    """One line a click, without its end; with a prefix, the event id is a last column."""
    columns = [
        *(pa.array(column).cast(pa.string()) for column in (clicks.user_id, clicks.item_id, clicks.category_id)),
        pa.array(BEHAVIORS).take(pa.array(clicks.behavior)),
        pa.array(clicks.ts).cast(pa.string()),
    ]
    if id_prefix is not None:
        columns.append(pc.binary_join_element_wise(id_prefix, pa.array(clicks.number).cast(pa.string()), "-"))
    return pc.binary_join_element_wise(*columns, ",")


def replace_lines(lines: pa.StringArray, chosen: NDArray[np.bool_], by: Iterable[str]) -> pa.StringArray:
    return pc.replace_with_mask(lines, pa.array(chosen), pa.array(by, pa.string()))


def to_bytes(lines: pa.StringArray) -> memoryview:
    """The lines as a file holds them, each with its end."""
    ended = pc.binary_join_element_wise(lines, "", "\n")
    _, offsets, content = ended.buffers()
    return memoryview(content)[: np.frombuffer(offsets, np.int32)[len(ended)]] if len(ended) else memoryview(b"")


def malform(rng: np.random.Generator, lines: list[str]) -> tuple[list[str], list[str]]:
    """Each line broken in one way, and the name of that way; none has all its columns readable any more."""
    kinds = [_WAYS[way] for way in rng.integers(len(_WAYS), size=len(lines))]
    places = rng.random(len(lines))
    broken = [way(line, place) for line, place, (_, way) in zip(lines, places, kinds, strict=True)]
    return broken, [name for name, _ in kinds]


def _cut_off(line: str, place: float) -> str:
    """Ends somewhere before `ts`: a cut inside a number would leave another number."""
    end = len(",".join(line.split(",")[: len(COLUMNS) - 1]))
    return line[: 1 + int(place * (end - 1))]


def _text_in_number(line: str, place: float) -> str:
    columns = line.split(",")
    columns[(0, 1, 2, 4)[int(place * 4)]] = _TEXT
    return ",".join(columns)


def _missing_column(line: str, place: float) -> str:
    columns = line.split(",")
    del columns[int(place * len(COLUMNS))]
    return ",".join(columns)


def _empty_line(line: str, place: float) -> str:
    return ""


_WAYS: tuple[tuple[str, Callable[[str, float], str]], ...] = (
    ("cut_off", _cut_off),
    ("text_in_number", _text_in_number),
    ("missing_column", _missing_column),
    ("empty_line", _empty_line),
)
MALFORMED_KINDS = tuple(name for name, _ in _WAYS)
