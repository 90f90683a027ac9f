"""A job's spec: frozen models of `include/job_specs/<job>.yaml`, read once at the entry point."""

import hashlib
import re
from datetime import timedelta
from typing import Annotated, Any, Literal, Self
from zoneinfo import ZoneInfo

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    StringConstraints,
    field_validator,
    model_validator,
)

from spark_jobs.contracts.durations import format_duration, parse_duration
from spark_jobs.contracts.events import EVENT_FIELDS
from spark_jobs.contracts.tables import COLUMN_PATTERN, NAME_PATTERN, RESERVED_WORDS, STREAM_TABLES
from spark_jobs.contracts.windows import DAY, Calendar, Grain, Pane, Sliding, micros, pane_of_grains


def _duration(value: Any) -> Any:
    if isinstance(value, timedelta):
        return value
    if not isinstance(value, str):
        raise ValueError(f"{value!r} is not a duration; write it like 10 seconds")
    return parse_duration(value)


Duration = Annotated[timedelta, BeforeValidator(_duration), PlainSerializer(format_duration)]
Name = Annotated[str, StringConstraints(pattern=NAME_PATTERN)]
ColumnName = Annotated[str, StringConstraints(pattern=COLUMN_PATTERN)]
Expression = Annotated[str, StringConstraints(min_length=1, strip_whitespace=True)]


class Section(BaseModel):
    """Refuses unknown keys, never changes after reading."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)


class EventMapping(Section):
    """Spark SQL over the source's schema, one expression a field of an event."""

    event_at: Expression | None = None
    visitor_id: Expression | None = None
    item_id: Expression | None = None
    category_id: Expression | None = None
    action: Expression = "'view'"
    event_id: Expression | None = None
    properties: Expression | None = None

    def declared(self) -> dict[str, str]:
        return {field: text for field in EVENT_FIELDS if (text := getattr(self, field))}


class CsvOptions(Section):
    header: bool = False
    sep: Annotated[str, StringConstraints(min_length=1, max_length=8)] = ","
    quote: Annotated[str, StringConstraints(min_length=1, max_length=1)] = '"'
    escape: Annotated[str, StringConstraints(min_length=1, max_length=1)] = "\\"
    null_value: str = ""


class Intake(Section):
    files_per_batch: int = Field(default=100, ge=1)


class Source(Section):
    """What every source says about its rows."""

    format: Literal["csv", "json", "text"]
    options: CsvOptions = CsvOptions()
    columns: Expression | None = Field(default=None, alias="schema")
    event: EventMapping
    rules: dict[ColumnName, Expression] = {}

    @model_validator(mode="after")
    def _schema_fits_format(self) -> Self:
        if self.format == "text" and self.columns:
            raise ValueError("text lines have the one column `value`; leave `schema` out")
        if self.format != "text" and not self.columns:
            raise ValueError(f"{self.format} needs a `schema`, for instance `user_id BIGINT, ts BIGINT`")
        if self.options.header and self.format != "csv":
            raise ValueError("only csv files have a header; remove options.header")
        return self


class FilesSource(Source):
    kind: Literal["files"]
    path: Annotated[str, StringConstraints(min_length=1)]
    intake: Intake = Intake()

    @property
    def place(self) -> str:
        return self.path


class SocketSource(Source):
    kind: Literal["socket"]
    host: str = "127.0.0.1"
    port: int = Field(ge=1, le=65535)

    @property
    def place(self) -> str:
        return f"{self.host}:{self.port}"

    @model_validator(mode="after")
    def _no_header(self) -> Self:
        if self.options.header:
            raise ValueError("a socket has no first line of a file; remove options.header")
        return self


AnySource = Annotated[FilesSource | SocketSource, Field(discriminator="kind")]


class TimeSection(Section):
    by: Literal["event", "arrival"] = "event"
    zone: str = "UTC"
    watermark_delay: Duration = timedelta(seconds=10)
    allowed_lateness: Duration = timedelta(hours=1)
    max_ahead: Duration = timedelta(minutes=5)
    trigger: Duration = timedelta(seconds=1)
    settle_after: Duration = timedelta(hours=2)
    deduplicate_within: Duration | None = None

    @field_validator("zone")
    @classmethod
    def _known_zone(cls, value: str) -> str:
        try:
            ZoneInfo(value)
        except (KeyError, ValueError, OSError) as error:  # what ZoneInfo raises for a name it does not know
            raise ValueError(f"{value!r} is not a time zone; use a name like Asia/Shanghai") from error
        return value

    @property
    def remember_ids(self) -> timedelta:
        """How long an event id is remembered, in event time."""
        return timedelta(minutes=10) if self.deduplicate_within is None else self.deduplicate_within

    @property
    def calendar(self) -> Calendar:
        return Calendar(self.zone)


MEASURE_KINDS = ("count", "sum", "min", "max", "average", "distinct")


class MeasureSection(Section):
    """One number of a window: exactly one kind, over the rows where `where` holds."""

    count: Expression | None = None
    sum: Expression | None = None
    min: Expression | None = None
    max: Expression | None = None
    average: Expression | None = None
    distinct: Expression | None = None
    where: Expression | None = None
    live: Literal["sketch", "exact"] | None = None

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        kinds = [kind for kind in MEASURE_KINDS if getattr(self, kind)]
        if len(kinds) != 1:
            raise ValueError(f"a measure has exactly one of {', '.join(MEASURE_KINDS)}; found {kinds or 'none'}")
        if self.live and not self.distinct:
            raise ValueError("`live` (sketch or exact) goes with `distinct` only")
        return self

    @property
    def kind(self) -> str:
        return next(kind for kind in MEASURE_KINDS if getattr(self, kind))

    @property
    def expression(self) -> str:
        return str(getattr(self, self.kind))


ALWAYS = {
    "page_views": MeasureSection(count="action = 'view'"),
    "unique_visitors": MeasureSection(distinct="visitor_id", where="action = 'view'", live="sketch"),
}


def _merge_dimensions(value: Any) -> Any:
    """`by` is a mapping, or a list of one-entry mappings, of names to expressions."""
    if isinstance(value, list):
        merged: dict[str, Any] = {}
        for entry in value:
            if not isinstance(entry, dict):
                raise ValueError(f"{entry!r} is not a dimension; write it like `province: properties['province']`")
            merged |= entry
        return merged
    return value


class TrafficSection(Section):
    grains: tuple[str, ...] = ("1 minute", "1 hour", "1 day")
    measures: dict[ColumnName, MeasureSection] = {}
    by: Annotated[dict[ColumnName, Expression], BeforeValidator(_merge_dimensions)] = {}

    @field_validator("grains")
    @classmethod
    def _grains_divide_a_day(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if not value:
            raise ValueError("name at least one grain, for instance 1 hour")
        sizes = [micros(parse_duration(text)) for text in value]
        for text, size in zip(value, sizes, strict=True):
            if size < 1_000_000 or DAY % size:
                raise ValueError(f"{text!r} does not divide a day; use 1 minute, 5 minutes, 1 hour, 1 day …")
        if len(set(sizes)) != len(sizes):
            raise ValueError("the same grain is named twice")
        return value

    @model_validator(mode="after")
    def _columns_are_free(self) -> Self:
        live = STREAM_TABLES["traffic_live"]
        taken = {name for name, _ in live.before + live.after} | {"pane_start", "status"}
        suffixed = {
            f"{name}_{suffix}"
            for name, measure in self.all_measures.items()
            for suffix in {"distinct": ("error",), "average": ("sum", "count")}.get(measure.kind, ())
        }
        for name in [*self.by, *self.all_measures]:
            if name in RESERVED_WORDS:
                raise ValueError(f"{name!r} is a word of SQL; a query could not name this column: choose another")
            if name in taken | suffixed or (name in self.by and name in self.all_measures):
                raise ValueError(f"{name!r} is the name of another column; choose another")
        return self

    @property
    def all_measures(self) -> dict[str, MeasureSection]:
        return ALWAYS | self.measures

    @property
    def all_grains(self) -> list[Grain]:
        return [Grain(text, micros(parse_duration(text))) for text in self.grains]

    @property
    def pane(self) -> Pane:
        return pane_of_grains(self.all_grains)


class HotItemsSection(Section):
    length: Duration = timedelta(hours=1)
    slide: Duration = timedelta(minutes=5)
    top: int = Field(default=10, ge=1, le=10_000)
    action: str = "view"

    @model_validator(mode="after")
    def _slide_fits(self) -> Self:
        if self.slide < timedelta(seconds=1) or self.length < self.slide:
            raise ValueError("slide is at least 1 second and at most the length of the window")
        if micros(self.slide) % 1_000_000 or micros(self.length) % 1_000_000:
            raise ValueError("length and slide are whole seconds")
        if self.sliding(Calendar("UTC")).pane.size * 10_000 < micros(self.length):
            raise ValueError("length and slide have too short a pane in common; more than 10,000 panes a window")
        return self

    def sliding(self, calendar: Calendar) -> Sliding:
        slide = micros(self.slide)
        return Sliding(micros(self.length), slide, calendar.standard_offset() % slide)


class MetricsSection(Section):
    traffic: TrafficSection = TrafficSection()
    hot_items: HotItemsSection = HotItemsSection()


class SuperviseSection(Section):
    enabled: bool = False
    stall_after: Duration = timedelta(minutes=2)
    stop_within: Duration = timedelta(minutes=1)


class QualitySection(Section):
    max_quarantine_share: float = Field(default=0.01, ge=0, le=1)
    max_trailing_change: float = Field(default=5.0, gt=0)


class RestartSection(Section):
    strategy: Literal["none", "fixed_delay", "failure_rate", "exponential"] = "failure_rate"
    attempts: int = Field(default=3, ge=0)
    max_failures: int = Field(default=3, ge=0)
    interval: Duration = timedelta(minutes=5)
    delay: Duration = timedelta(seconds=10)
    initial: Duration = timedelta(seconds=1)
    max: Duration = timedelta(minutes=1)
    multiplier: float = Field(default=2.0, ge=1)
    reset_after: Duration = timedelta(hours=1)


class SavepointsSection(Section):
    keep_last: int = Field(default=20, ge=1)
    keep_hourly: int = Field(default=24, ge=0)
    keep_daily: int = Field(default=7, ge=0)
    retained_batches: int = Field(default=100, ge=2)


class NotifySection(Section):
    kind: Literal["log", "file", "webhook"] = "log"
    connection: str | None = None


class ResourcesSection(Section):
    master: str = "local[2]"
    driver_memory: Annotated[str, StringConstraints(pattern=r"^\d+[mg]$")] = "2g"
    shuffle_partitions: int = Field(default=2, ge=1)
    conf: dict[str, str] = {}

    @field_validator("conf")
    @classmethod
    def _only_spark_keys(cls, value: dict[str, str]) -> dict[str, str]:
        if wrong := [key for key in value if not re.fullmatch(r"spark\.[A-Za-z0-9_.]+", key)]:
            raise ValueError(f"{wrong[0]!r} is not a Spark setting; keys begin with `spark.`")
        return value


class JobSpec(Section):
    """The state we want a job in."""

    job: Name
    supervise: SuperviseSection = SuperviseSection()
    source: Annotated[
        tuple[AnySource, ...], Field(min_length=1), BeforeValidator(lambda v: v if isinstance(v, list | tuple) else [v])
    ]
    time: TimeSection = TimeSection()
    metrics: MetricsSection = MetricsSection()
    quality: QualitySection = QualitySection()
    restart: RestartSection = RestartSection()
    savepoints: SavepointsSection = SavepointsSection()
    notify: NotifySection = NotifySection()
    resources: ResourcesSection = ResourcesSection()

    @property
    def fingerprint(self) -> str:
        """Changes with everything that a running driver would have to be started anew for."""
        deciding = self.model_dump_json(by_alias=True, include={"source", "time", "metrics", "resources", "savepoints"})
        return hashlib.sha256(deciding.encode()).hexdigest()[:16]

    @model_validator(mode="after")
    def _sources_fit_time(self) -> Self:
        for index, source in enumerate(self.source):
            where = f"source[{index}].event" if len(self.source) > 1 else "source.event"
            if self.time.by == "event" and not source.event.event_at:
                raise ValueError(f"{where}.event_at is missing; time.by: arrival does without it")
            if self.time.by == "arrival" and source.event.event_at:
                raise ValueError(f"{where}.event_at has no effect with time.by: arrival; remove one of the two")
        if self.time.deduplicate_within is not None and not self.has_ids:
            raise ValueError("time.deduplicate_within needs source.event.event_id")
        return self

    @property
    def has_ids(self) -> bool:
        return any(source.event.event_id for source in self.source)

    @property
    def sliding(self) -> Sliding:
        return self.metrics.hot_items.sliding(self.time.calendar)
