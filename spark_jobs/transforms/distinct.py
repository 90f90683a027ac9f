"""Counting distinct values: by a sketch whose error is known, or exactly with a stated cap."""

import json
import struct
from collections import deque
from collections.abc import Sequence
from typing import Protocol

from datasketches import hll_sketch, hll_union, tgt_hll_type
from pyroaring import BitMap64

from spark_jobs.errors import TidemarkError

LG_K = 14
EMPTY_TEXT = "\0"
"""What the empty text is sketched as; DataSketches passes over it, and exact counting does not."""

EXACT_CAP = 5_000_000
"""Distinct values a window may hold in exact mode; about 1 GB of text ids, far less for integers."""


class DistinctSet(Protocol):
    """A set that can be counted, united and stored; `error` is the relative standard error of the count."""

    error: float

    def add(self, values: Sequence[str]) -> None: ...
    def unite(self, stored: bytes) -> None: ...
    def store(self) -> bytes: ...
    def count(self) -> int: ...


class Sketch:
    """A HyperLogLog of Apache DataSketches, the same format as Spark's `hll_sketch_agg`."""

    error = abs(float(hll_sketch.get_rel_err(True, True, LG_K, 1)))

    def __init__(self) -> None:
        self._union = hll_union(LG_K)

    def add(self, values: Sequence[str]) -> None:
        sketch = hll_sketch(LG_K, tgt_hll_type.HLL_8)
        deque(map(sketch.update, values), maxlen=0)  # a loop without a line of Python a value
        if "" in values:
            sketch.update(EMPTY_TEXT)
        self._union.update(sketch)

    def unite(self, stored: bytes) -> None:
        self._union.update(hll_sketch.deserialize(stored))

    def store(self) -> bytes:
        return bytes(self._union.get_result(tgt_hll_type.HLL_8).serialize_compact())

    def count(self) -> int:
        return round(float(self._union.get_estimate()))


class Exact:
    """A roaring bitmap of the values that are integers, a set of the others."""

    error = 0.0

    def __init__(self) -> None:
        self._numbers = BitMap64()
        self._texts: set[str] = set()

    def add(self, values: Sequence[str]) -> None:
        numbers: list[str] = []
        texts: list[str] = []
        for value in values:
            (numbers if _is_canonical(value) else texts).append(value)
        self._numbers.update(map(int, numbers))
        self._texts.update(texts)
        self._check()

    def unite(self, stored: bytes) -> None:
        (size,) = struct.unpack_from("<Q", stored)
        self._numbers |= BitMap64.deserialize(stored[8 : 8 + size])
        self._texts.update(json.loads(stored[8 + size :]))
        self._check()

    def store(self) -> bytes:
        numbers = self._numbers.serialize()
        return struct.pack("<Q", len(numbers)) + numbers + json.dumps(sorted(self._texts)).encode()

    def count(self) -> int:
        return len(self._numbers) + len(self._texts)

    def _check(self) -> None:
        if self.count() > EXACT_CAP:
            raise TidemarkError(
                f"a window has more than {EXACT_CAP:,} distinct values, the cap of exact counting; use `live: sketch`"
            )


def _is_canonical(value: str) -> bool:
    """Whether the text is the one way to write an integer below 2**63."""
    return value.isascii() and value.isdigit() and len(value) < 19 and (value[0] != "0" or value == "0")
