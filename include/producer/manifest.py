"""The manifest: what a producer wrote, counted apart from whatever reads it."""

import json
import os
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from pyroaring import BitMap

from include.errors import UsageError
from include.producer.click_stream import Block
from include.producer.clicks import BEHAVIORS
from include.producer.faults import FAULTS, Fault
from include.producer.lines import MALFORMED_KINDS

HOUR_SECONDS = 3600


@dataclass
class ClickTally:
    """Counts of rows that were written. A valid row is one that is neither malformed nor dated in the future."""

    rows: int = 0
    planted: Counter[str] = field(default_factory=Counter)
    malformed: Counter[str] = field(default_factory=Counter)
    views_by_hour: Counter[int] = field(default_factory=Counter)  # keyed by hours since 1970 UTC
    repeated_views: int = 0
    visitors: BitMap = field(default_factory=BitMap)
    oldest: int | None = None  # event times of valid rows, epoch seconds
    newest: int | None = None

    def add(self, block: Block) -> None:
        counts = np.bincount(block.codes, minlength=len(FAULTS) + 1)
        self.rows += len(block.codes)
        self.planted.update({str(fault): int(count) for fault, count in zip(FAULTS, counts, strict=False)})
        self.malformed.update(block.malformed_kinds())
        valid = ~np.isin(block.codes, [FAULTS.index(Fault.MALFORMED), FAULTS.index(Fault.FUTURE)])
        views = valid & (block.clicks.behavior == BEHAVIORS.index("pv"))
        self.repeated_views += int(np.count_nonzero(views & (block.codes == FAULTS.index(Fault.DUPLICATE))))
        self.visitors |= BitMap(block.clicks.user_id[views].astype(np.uint32))
        self.views_by_hour.update(_count_hours(block.clicks.ts[views]))
        if valid.any():
            self._widen(int(block.clicks.ts[valid].min()), int(block.clicks.ts[valid].max()))

    def merge(self, other: "ClickTally") -> None:
        self.rows += other.rows
        self.planted.update(other.planted)
        self.malformed.update(other.malformed)
        self.views_by_hour.update(other.views_by_hour)
        self.repeated_views += other.repeated_views
        self.visitors |= other.visitors
        if other.oldest is not None and other.newest is not None:
            self._widen(other.oldest, other.newest)

    def _widen(self, oldest: int, newest: int) -> None:
        self.oldest = oldest if self.oldest is None else min(oldest, self.oldest)
        self.newest = newest if self.newest is None else max(newest, self.newest)

    def as_json(self) -> dict[str, Any]:
        """`page_views` counts repeated rows too: without event ids a stream cannot tell them apart."""
        return {
            "rows": self.rows,
            "planted": {str(fault): self.planted[fault] for fault in FAULTS},
            "malformed": {kind: self.malformed[kind] for kind in MALFORMED_KINDS},
            "valid_rows": self.rows - self.planted[Fault.MALFORMED] - self.planted[Fault.FUTURE],
            "oldest_event_at": _iso(self.oldest),
            "newest_event_at": _iso(self.newest),
            "expected": {
                "page_views": self.views_by_hour.total(),
                "repeated_page_views": self.repeated_views,
                "unique_visitors": len(self.visitors),
                "page_views_by_hour": {
                    _iso(hour * HOUR_SECONDS): count for hour, count in sorted(self.views_by_hour.items())
                },
            },
        }


def _count_hours(ts: Any) -> dict[int, int]:
    if not len(ts):
        return {}
    hours = ts // HOUR_SECONDS
    first = int(hours.min())
    return {first + i: int(count) for i, count in enumerate(np.bincount(hours - first)) if count}


def _iso(seconds: int | None) -> str | None:
    return None if seconds is None else iso_instant(datetime.fromtimestamp(seconds, UTC))


def iso_instant(at: datetime) -> str:
    return at.isoformat().replace("+00:00", "Z")


def manifest_path(home: Path, name: str) -> Path:
    """Where the manifest of `name` goes; refused if that name is taken."""
    path = home / "produced" / f"{name}.json"
    if path.exists():
        raise UsageError(f"{path} exists already; choose another --name")
    return path


@contextmanager
def recorded(path: Path, manifest: Callable[[], dict[str, Any]]) -> Iterator[None]:
    """Write the manifest when the block ends, also if it fails: what has landed stays landed."""
    complete = False
    try:
        yield
        complete = True
    finally:
        _write(path, manifest() | {"complete": complete})


def _write(path: Path, manifest: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    hidden = path.with_name(f".{path.name}")
    hidden.write_text(json.dumps(manifest, indent=2) + "\n", encoding="utf-8")
    os.replace(hidden, path)
