"""The measures and dimensions of a spec: their inputs as Spark columns, their tallies as Measure objects."""

from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import (
    ByteType,
    DataType,
    DateType,
    DecimalType,
    IntegerType,
    LongType,
    ShortType,
    StringType,
    TimestampType,
)

from spark_jobs.contracts.events import EVENT_FIELDS
from spark_jobs.errors import SpecError
from spark_jobs.settings import MeasureSection, TrafficSection
from spark_jobs.transforms.distinct import Exact, Sketch
from spark_jobs.transforms.expressions import attempt, type_of
from spark_jobs.transforms.measures import Average, Count, Distinct, Fold, Measure
from spark_jobs.transforms.parse_events import IDS

WHOLE = (ByteType, ShortType, IntegerType, LongType)
ORDERED = (*WHOLE, DecimalType, StringType, TimestampType, DateType)


@dataclass(frozen=True)
class Declared:
    """What a traffic section asks of the rows: extra columns, and the measures over them."""

    inputs: dict[str, Column]
    dimensions: dict[str, str]
    measures: tuple[Measure, ...]

    def select(self, events: DataFrame) -> DataFrame:
        return events.withColumns(self.inputs) if self.inputs else events


class _Inputs:
    """Columns for expressions: an event's own column as it is, the same expression once."""

    def __init__(self, events: DataFrame) -> None:
        self._events = events
        self._names: dict[tuple[str, str], str] = {}
        self.columns: dict[str, Column] = {}

    def column(self, field: str, text: str, cast: str | None = None, as_sent: bool = False) -> tuple[str, DataType]:
        """The name and type of the column that holds the expression, cast where asked.

        Ids may be sent as numbers; only who counts them alone takes them `as_sent`: as texts they have another order.
        """
        found = type_of(self._events, field, text)
        own = text in EVENT_FIELDS and (as_sent or text not in IDS)
        if own and (cast is None or cast == found.simpleString()):
            return text, found
        key = (text, cast or "")
        if key not in self._names:
            name = f"__input_{len(self._names)}"
            self._names[key] = name
            self.columns[name] = attempt(text).cast(cast) if cast else attempt(text)
        return self._names[key], found


def declare_measures(traffic: TrafficSection, events: DataFrame, settled: bool = False) -> Declared:
    """Check every expression against `events` and name the columns; `settled` counts distinct values exactly."""
    inputs = _Inputs(events)
    dimensions = {
        name: inputs.column(f"metrics.traffic.by.{name}", text, "string")[0] for name, text in traffic.by.items()
    }
    measures = tuple(_declare(name, section, inputs, settled) for name, section in traffic.all_measures.items())
    return Declared(inputs.columns, dimensions, measures)


def _declare(name: str, section: MeasureSection, inputs: _Inputs, settled: bool) -> Measure:
    field = f"metrics.traffic.measures.{name}"
    if section.kind == "count":
        counted = "true" if section.expression == "*" else section.expression
        text = f"({counted}) AND ({section.where})" if section.where else counted
        return Count(name, _condition(f"{field}.count", text, inputs), None, None)
    where = _condition(f"{field}.where", section.where, inputs) if section.where else None
    if section.kind == "distinct":
        value, _ = inputs.column(f"{field}.distinct", section.expression, "string", as_sent=True)
        exact = settled or section.live == "exact"
        return Distinct(name, where, value, pa.string(), Exact if exact else Sketch)
    value, found = inputs.column(f"{field}.{section.kind}", section.expression)
    allowed = ORDERED if section.kind in ("min", "max") else (*WHOLE, DecimalType)
    if not isinstance(found, allowed):
        raise SpecError(
            f"{field}.{section.kind}: {section.expression!r} is a {found.simpleString()}; a number that must not "
            "depend on the order of rows is whole or decimal: cast(… AS decimal(18,2))"
        )
    arrow_type = pa.timestamp("us", "UTC") if isinstance(found, TimestampType) else to_arrow_type(found)
    if section.kind == "average":
        return Average(name, where, value, arrow_type)
    return Fold(name, where, value, arrow_type, section.kind)


def _condition(field: str, text: str, inputs: _Inputs) -> str:
    name, found = inputs.column(field, text)
    if found.simpleString() != "boolean":
        raise SpecError(f"{field}: {text!r} is a {found.simpleString()}, not true or false")
    return name
