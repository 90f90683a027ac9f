"""The numbers of a window, as the spec declares them: how rows become tallies, tallies become windows.

A tally is additive: the tallies of any parts of a window's rows merge to the window's number. Stream and batch use the
same measures; only how distinct values are held (a sketch, or exactly) is chosen by the caller.
"""

import itertools
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from spark_jobs.transforms.distinct import DistinctSet, Exact, Sketch

Values = Mapping[str, Any]
"""The tally columns of one row, by name."""

AVERAGE_SCALE = 4
EXACTLY = Context(prec=80, rounding=ROUND_HALF_UP)
"""Python rounds sums to 28 digits unless told otherwise; a column holds 38."""


@dataclass(frozen=True)
class Groups:
    """Rows with the number of the group that each belongs to."""

    rows: pa.Table
    numbers: npt.NDArray[np.int64]
    count: int

    def where(self, column: str | None) -> npt.NDArray[np.bool_]:
        """The rows a measure looks at: NULL is not true."""
        if column is None:
            return np.ones(self.rows.num_rows, dtype=bool)
        return np.asarray(pc.fill_null(self.rows[column], False).to_numpy().astype(bool))

    def aggregate(self, where: str | None, value: str, function: str) -> pa.Array:
        """One value a group, NULL for a group without values."""
        mask = pa.array(self.where(where))
        table = pa.table({"group": self.numbers, "value": self.rows[value]}).filter(mask)
        found = table.group_by("group").aggregate([("value", function)])
        place = np.full(self.count, -1, dtype=np.int64)
        place[found["group"].to_numpy()] = np.arange(found.num_rows)
        return found[f"value_{function}"].combine_chunks().take(pa.array(place, mask=place < 0))


@dataclass(frozen=True)
class Measure(ABC):
    """One number. `where` and `value` are columns of the rows; `value_type` is that of `value`."""

    name: str
    where: str | None
    value: str | None
    value_type: pa.DataType | None

    @property
    @abstractmethod
    def tally_fields(self) -> list[pa.Field]: ...

    @property
    @abstractmethod
    def live_fields(self) -> list[pa.Field]: ...

    @abstractmethod
    def tally(self, groups: Groups) -> list[pa.Array]:
        """The tally columns, one value a group."""

    @abstractmethod
    def merge(self, state: Any, tally: Values) -> Any:
        """The state of a window after one more tally; the state of a new window is None."""

    @abstractmethod
    def store(self, state: Any) -> Values:
        """The state as one tally, for folding many into it."""

    @abstractmethod
    def result(self, state: Any) -> list[Any]:
        """The live columns of a window."""


class Count(Measure):
    @property
    def tally_fields(self) -> list[pa.Field]:
        return [pa.field(self.name, pa.int64())]

    live_fields = tally_fields

    def tally(self, groups: Groups) -> list[pa.Array]:
        counted = groups.numbers[groups.where(self.where)]
        return [pa.array(np.bincount(counted, minlength=groups.count).astype(np.int64))]

    def merge(self, state: Any, tally: Values) -> Any:
        return (state or 0) + (tally[self.name] or 0)

    def store(self, state: Any) -> Values:
        return {self.name: state}

    def result(self, state: Any) -> list[Any]:
        return [state or 0]


@dataclass(frozen=True)
class Fold(Measure):
    """sum, min or max: NULL where a window has no value."""

    function: str

    @property
    def tally_fields(self) -> list[pa.Field]:
        return [pa.field(self.name, self._type())]

    live_fields = tally_fields

    def _type(self) -> pa.DataType:
        assert self.value_type is not None
        return _sum_type(self.value_type) if self.function == "sum" else self.value_type

    def tally(self, groups: Groups) -> list[pa.Array]:
        assert self.value is not None
        return [groups.aggregate(self.where, self.value, self.function).cast(self._type())]

    def merge(self, state: Any, tally: Values) -> Any:
        new = tally[self.name]
        if state is None or new is None:
            return new if state is None else state
        if self.function == "sum":
            return _add(state, new)
        return min(state, new) if self.function == "min" else max(state, new)

    def store(self, state: Any) -> Values:
        return {self.name: state}

    def result(self, state: Any) -> list[Any]:
        return [state]


class Average(Measure):
    """Sum and count are tallied; the quotient is rounded half up to four more places than the values have.

    Where 38 digits do not hold as many, to as many as they hold.
    """

    @property
    def tally_fields(self) -> list[pa.Field]:
        assert self.value_type is not None
        return [
            pa.field(f"{self.name}_sum", _sum_type(self.value_type)),
            pa.field(f"{self.name}_count", pa.int64()),
        ]

    @property
    def live_fields(self) -> list[pa.Field]:
        return [pa.field(self.name, pa.decimal128(38, self._scale()))]

    def _scale(self) -> int:
        assert self.value_type is not None
        if not pa.types.is_decimal(self.value_type):
            return AVERAGE_SCALE
        precision, scale = int(self.value_type.precision), int(self.value_type.scale)
        return min(AVERAGE_SCALE + scale, 38 - (precision - scale))

    def tally(self, groups: Groups) -> list[pa.Array]:
        assert self.value is not None
        total, count = self.tally_fields
        return [
            groups.aggregate(self.where, self.value, "sum").cast(total.type),
            pc.fill_null(groups.aggregate(self.where, self.value, "count").cast(count.type), 0),
        ]

    def merge(self, state: Any, tally: Values) -> Any:
        total, count = state or (0, 0)
        return _add(total, tally[f"{self.name}_sum"] or 0), count + (tally[f"{self.name}_count"] or 0)

    def store(self, state: Any) -> Values:
        total, count = state or (None, 0)
        return {f"{self.name}_sum": total, f"{self.name}_count": count}

    def result(self, state: Any) -> list[Any]:
        total, count = state or (0, 0)
        if not count:
            return [None]
        quotient = EXACTLY.divide(Decimal(total), Decimal(count))
        return [quotient.quantize(Decimal(1).scaleb(-self._scale()), context=EXACTLY)]


@dataclass(frozen=True)
class Distinct(Measure):
    """How many different values; NULL is none. The error stands beside the number."""

    kind: type[Sketch] | type[Exact]

    @property
    def tally_fields(self) -> list[pa.Field]:
        return [pa.field(self.name, pa.binary())]

    @property
    def live_fields(self) -> list[pa.Field]:
        return [pa.field(self.name, pa.int64()), pa.field(f"{self.name}_error", pa.float64())]

    def tally(self, groups: Groups) -> list[pa.Array]:
        assert self.value is not None
        values = groups.rows[self.value]
        mask = groups.where(self.where) & np.asarray(values.is_valid())
        numbers = groups.numbers[mask].astype(np.int16 if groups.count < 1 << 15 else np.int64)
        order = np.argsort(numbers, kind="stable")  # by radix for short numbers
        numbers = numbers[order]
        texts = values.filter(pa.array(mask)).combine_chunks().take(pa.array(order)).cast(pa.string()).to_pylist()
        sets: list[DistinctSet | None] = [None] * groups.count
        bounds = [*np.flatnonzero(np.diff(numbers, prepend=-1)), len(numbers)]
        for start, end in itertools.pairwise(bounds):
            held = self.kind()
            held.add(texts[start:end])
            sets[numbers[start]] = held
        return [pa.array([held.store() if held else None for held in sets], pa.binary())]

    def merge(self, state: Any, tally: Values) -> Any:
        held = state or self.kind()
        if tally[self.name] is not None:
            held.unite(tally[self.name])
        return held

    def store(self, state: Any) -> Values:
        return {self.name: state.store() if state else None}

    def result(self, state: Any) -> list[Any]:
        held = state or self.kind()
        return [held.count(), held.error]


def _add(total: Any, new: Any) -> Any:
    return EXACTLY.add(total, new) if isinstance(new, Decimal) else total + new


def _sum_type(value: pa.DataType) -> pa.DataType:
    return pa.decimal128(38, value.scale) if pa.types.is_decimal(value) else pa.int64()
