"""Raw rows of any log become events: everything about a row that needs neither clock nor watermark.

It all lies in the streaming plan, with no literal that changes from batch to batch, so that Spark compiles it once.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass

from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ByteType,
    IntegerType,
    LongType,
    MapType,
    ShortType,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from spark_jobs.contracts.events import EVENT_FIELDS, Fault, Reason
from spark_jobs.contracts.windows import micros
from spark_jobs.errors import SpecError
from spark_jobs.settings import JobSpec, Source
from spark_jobs.transforms.expressions import attempt, first_line, type_of

RAW = ("__value", "__source", "__block", "__arrived")
"""What a source opens: the text of a row, where it stands (file and first byte of its block), when it arrived."""

IDS = ("visitor_id", "item_id", "category_id")
WHOLE = (ByteType, ShortType, IntegerType, LongType)
EARLIEST, LATEST = "TIMESTAMP'0002-01-01'", "TIMESTAMP'9998-12-31'"


@dataclass(frozen=True)
class Parser:
    """Turns the raw rows of all sources of a spec into one frame; `faults[n]` is what `fault` n means."""

    spec: JobSpec
    faults: tuple[Fault, ...]
    parse: Callable[[list[DataFrame]], DataFrame]


def build_parser(spec: JobSpec, empty: DataFrame) -> Parser:
    """Check every expression of the sources against `empty` (a frame of RAW columns) and return the parser."""
    faults: list[Fault] = []
    steps = []
    whole = set(IDS)
    for index, source in enumerate(spec.source):
        name = "source" if len(spec.source) == 1 else f"source[{index}]"
        first = len(faults)
        faults += _faults(source)
        steps.append((source, first))
        _check(empty, source, name)
        whole &= _whole_ids(_columns(empty, source), source)

    def parse(frames: list[DataFrame]) -> DataFrame:
        parts = [
            _events(frame, source, first, spec, whole) for frame, (source, first) in zip(frames, steps, strict=True)
        ]
        united = parts[0]
        for part in parts[1:]:
            united = united.unionByName(part)
        return united

    return Parser(spec, tuple(faults), parse)


def _faults(source: Source) -> list[Fault]:
    structure = [
        Fault(Reason.MALFORMED, "empty line"),
        Fault(Reason.MALFORMED, f"does not fit the {source.format} schema"),
        Fault(Reason.MALFORMED, "event_at is null"),
        Fault(Reason.MALFORMED, "event_at is outside the years 2 to 9998"),
    ]
    return structure + [Fault(Reason.RULE, name) for name in source.rules]


def _columns(frame: DataFrame, source: Source) -> DataFrame:
    """RAW columns, `__unfit` (true where the row does not fit the schema) and the columns of the schema."""
    if source.format == "text":
        return frame.select(*RAW, F.lit(False).alias("__unfit"), F.col("__value").alias("value"))
    schema = f"{source.columns}, __corrupt STRING"
    common = {"columnNameOfCorruptRecord": "__corrupt", "mode": "PERMISSIVE"}
    if source.format == "csv":
        options = source.options
        parsed = F.from_csv(
            "__value",
            schema,
            common
            | {"sep": options.sep, "quote": options.quote, "escape": options.escape, "nullValue": options.null_value},
        )
    else:
        parsed = F.from_json("__value", schema, common)
    whole = frame.select(*RAW, parsed.alias("__parsed"))
    names = [name for name in whole.select("__parsed.*").columns if name != "__corrupt"]
    unfit = F.col("__parsed").isNull() | F.col("__parsed.__corrupt").isNotNull()
    return whole.select(*RAW, unfit.alias("__unfit"), *(F.col(f"__parsed.`{name}`").alias(name) for name in names))


def _check(empty: DataFrame, source: Source, name: str) -> None:
    try:
        columns = _columns(empty, source)
        columns.schema  # noqa: B018  analysis happens here
    except (PySparkException, ValueError) as error:
        raise SpecError(f"{name}.schema: {source.columns!r}: {first_line(error)}") from None
    for field, text in source.event.declared().items():
        found = type_of(columns, f"{name}.event.{field}", text)
        if field == "event_at" and not isinstance(found, TimestampType | TimestampNTZType):
            raise SpecError(
                f"{name}.event.event_at: {text!r} is a {found.simpleString()}, not a timestamp; use timestamp_seconds, "
                "timestamp_millis or to_timestamp"
            )
        if field == "properties" and not isinstance(found, MapType):
            raise SpecError(f"{name}.event.properties: {text!r} is a {found.simpleString()}, not a map")
        if field not in ("event_at", "properties") and isinstance(found, MapType | StructType):
            raise SpecError(f"{name}.event.{field}: {text!r} is a {found.simpleString()}, not a text or number")
    with_events = _with_event_columns(columns, source)
    for rule, text in source.rules.items():
        found = type_of(with_events, f"{name}.rules.{rule}", text)
        if found.simpleString() != "boolean":
            raise SpecError(f"{name}.rules.{rule}: {text!r} is a {found.simpleString()}, not true or false")


def _without_cast(text: str) -> str:
    """`x` for `cast(x AS string)`: a number crosses to Arrow several times faster than its text."""
    cast = re.fullmatch(r"cast\(\s*(`?\w+`?)\s+as\s+string\s*\)", text, re.IGNORECASE)
    return cast[1] if cast else text


def _whole_ids(columns: DataFrame, source: Source) -> set[str]:
    """The ids of the source that are whole numbers, made texts only in Arrow."""
    declared = source.event.declared()
    return {
        field
        for field in IDS
        if field not in declared or isinstance(type_of(columns, field, _without_cast(declared[field])), WHOLE)
    }


def _with_event_columns(columns: DataFrame, source: Source) -> DataFrame:
    """The event's columns beside those of the schema that they do not shadow: what rules are written over."""
    declared = source.event.declared()
    types = {"event_at": "timestamp", "properties": "map<string,string>"}
    events = [
        (attempt(declared[field]) if field in declared else F.lit(None)).cast(types.get(field, "string")).alias(field)
        for field in EVENT_FIELDS
    ]
    kept = [F.col(f"`{name}`") for name in columns.columns if name.lower() not in EVENT_FIELDS]
    return columns.select(*kept, *events)


def _events(frame: DataFrame, source: Source, first_fault: int, spec: JobSpec, whole: set[str]) -> DataFrame:
    """Event columns, `fault`, `raw` where it may be needed, and where the row stands; `__whole_<id>` are numbers."""
    columns = _columns(frame, source)
    declared = source.event.declared()
    for field in sorted(whole):
        number = attempt(_without_cast(declared[field])) if field in declared else F.lit(None)
        columns = columns.withColumn(f"__whole_{field}", number.cast("bigint"))
    numbers = [f"__whole_{field}" for field in sorted(whole)]
    rows = _with_event_columns(columns, source)
    fault = _fault_number(source, first_fault, spec.time.by == "event")
    rows = rows.select(*RAW, *EVENT_FIELDS, *numbers, fault.alias("fault"))
    ahead = F.col("event_at") > F.expr(f"timestamp_micros(unix_micros(__arrived) + {micros(spec.time.max_ahead)}L)")
    keep_raw = F.col("fault").isNotNull() | ahead
    return rows.select(
        *EVENT_FIELDS,
        *numbers,
        "fault",
        F.when(keep_raw, F.col("__value")).alias("raw"),
        "__block",
        F.lit(int(source.options.header)).alias("__header"),
        "__source",
    )


def leave_spark(events: DataFrame, spec: JobSpec) -> DataFrame:
    """Only what the batch needs: fields that some source declares, ids as numbers where they are, measures' inputs."""
    declared = {field for source in spec.source for field in source.event.declared()}
    whole = {name.removeprefix("__whole_"): name for name in events.columns if name.startswith("__whole_")}
    return events.select(
        *(F.col(whole.get(field, field)).alias(field) for field in EVENT_FIELDS if field in declared),
        "fault",
        "raw",
        "__block",
        "__header",
        "__source",
        *(name for name in events.columns if name.startswith("__input_")),
    )


def _fault_number(source: Source, first: int, by_event_time: bool) -> Column:
    """The number of the first check that the row fails, in the order of the design; NULL for a sound row."""
    event_at = F.col("event_at")
    checks: list[Column] = [F.trim("__value") == "", F.col("__unfit")]
    if by_event_time:
        checks += [event_at.isNull(), (event_at < F.expr(EARLIEST)) | (event_at > F.expr(LATEST))]
    else:
        checks += [F.lit(False), F.lit(False)]
    checks += [~F.coalesce(attempt(text), F.lit(False)) for text in source.rules.values()]
    number = F.lit(None).cast("smallint")
    for index, failed in reversed(list(enumerate(checks))):
        number = F.when(failed, F.lit(first + index).cast("smallint")).otherwise(number)
    return number
