"""A spec says what it means or is refused with the file, the path of the field and a remedy."""

import copy
import os
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import duckdb
import pytest
import yaml
from pydantic import ValidationError

from include.errors import UsageError
from include.settings import JOB_SPECS, load_spec, resolve_home, source_path
from spark_jobs.contracts.tables import RESERVED_WORDS
from spark_jobs.settings import FilesSource, JobSpec

MINIMAL: dict[str, Any] = {
    "job": "clicks",
    "source": {
        "kind": "files",
        "path": "landing/clicks",
        "format": "csv",
        "schema": "user_id BIGINT, ts BIGINT",
        "event": {"event_at": "timestamp_seconds(ts)", "visitor_id": "user_id"},
    },
}
JSON_LINES = MINIMAL["source"] | {"format": "json", "path": "landing/more"}
SOCKET = {"kind": "socket", "port": 9999, "format": "text", "event": {"event_at": "to_timestamp(value)"}}
Load = Callable[[Any], JobSpec]


def changed(path: str, value: Any, spec: dict[str, Any] = MINIMAL) -> dict[str, Any]:
    """The spec with one field set; `a.b` names b in section a."""
    result = copy.deepcopy(spec)
    *sections, last = path.split(".")
    place = result
    for section in sections:
        place = place.setdefault(section, {})
    place[last] = value
    return result


@pytest.fixture
def load(tmp_path: Path) -> Load:
    def write_and_load(spec: Any) -> JobSpec:
        path = tmp_path / "clicks.yaml"
        path.write_text(spec if isinstance(spec, str) else yaml.safe_dump(spec), encoding="utf-8")
        return load_spec("clicks", path)

    return write_and_load


def refusal(load: Load, spec: Any) -> str:
    with pytest.raises(UsageError) as refused:
        load(spec)
    text = str(refused.value)
    assert "\n" not in text
    assert "clicks.yaml" in text, "the file is named"
    return text


def test_sections_left_out_take_the_defaults_of_the_design(load: Load) -> None:
    spec = load(MINIMAL)
    assert spec.time.by == "event"
    assert spec.time.zone == "UTC"
    assert spec.time.watermark_delay == timedelta(seconds=10)
    assert spec.time.allowed_lateness == timedelta(hours=1)
    assert spec.time.max_ahead == timedelta(minutes=5)
    assert spec.metrics.traffic.grains == ("1 minute", "1 hour", "1 day")
    assert list(spec.metrics.traffic.all_measures) == ["page_views", "unique_visitors"]
    assert (spec.metrics.hot_items.length, spec.metrics.hot_items.slide) == (timedelta(hours=1), timedelta(minutes=5))
    assert spec.source[0].event.action == "'view'"


def test_every_shipped_spec_can_be_loaded() -> None:
    names = [path.stem for path in JOB_SPECS.glob("*.yaml")]
    assert names
    for name in names:
        assert load_spec(name).job == name


def test_the_spec_of_the_design_is_understood(load: Load) -> None:
    text = """
job: clicks
supervise: {enabled: true, stall_after: 2 minutes, stop_within: 1 minute}
source:
  kind: files
  path: landing/clicks
  format: csv
  options: {header: false, sep: ","}
  schema: user_id BIGINT, item_id BIGINT, category_id BIGINT, behavior STRING, ts BIGINT
  event:
    event_at: timestamp_seconds(ts)
    visitor_id: cast(user_id AS string)
    action: CASE behavior WHEN 'pv' THEN 'view' ELSE behavior END
  rules: {known_action: "action IN ('view','buy','cart','fav')", dated: "event_at >= '2000-01-01'"}
  intake: {files_per_batch: 100}
time: {by: event, zone: Asia/Shanghai, watermark_delay: 10 seconds, allowed_lateness: 1 hour, max_ahead: 5 minutes,
       trigger: 1 second, settle_after: 2 hours}
metrics:
  traffic:
    grains: [1 minute, 1 hour, 1 day]
    measures:
      page_views: {count: "action = 'view'"}
      unique_visitors: {distinct: visitor_id, where: "action = 'view'", live: sketch}
      revenue: {sum: "cast(properties['amount'] AS decimal(18,2))", where: "action = 'buy'"}
    by: []
  hot_items: {length: 1 hour, slide: 5 minutes, top: 10, action: view}
quality: {max_quarantine_share: 0.01, max_trailing_change: 5.0}
restart: {strategy: failure_rate, max_failures: 3, interval: 5 minutes, delay: 10 seconds}
savepoints: {keep_last: 20, keep_hourly: 24, keep_daily: 7, retained_batches: 100}
notify: {kind: log}
resources: {master: "local[2]", driver_memory: 2g, shuffle_partitions: 2, conf: {}}
"""
    assert list(load(text).metrics.traffic.all_measures) == ["page_views", "unique_visitors", "revenue"]


def test_a_spec_survives_the_way_to_the_driver(load: Load) -> None:
    spec = changed("time.deduplicate_within", "90 seconds", changed("source.event.event_id", "user_id"))
    loaded = load(changed("metrics.traffic.by", [{"user": "visitor_id"}], spec))
    again = JobSpec.model_validate(loaded.model_dump(mode="json", by_alias=True, exclude_none=True))
    assert again == loaded


def test_a_spec_never_changes_after_reading(load: Load) -> None:
    with pytest.raises(ValidationError, match="frozen"):
        load(MINIMAL).job = "other"  # type: ignore[misc]


@pytest.mark.parametrize(
    ("path", "value", "told"),
    [
        ("tiem", {}, "tiem: unknown key"),
        ("time.zome", "UTC", "time.zome: unknown key"),
        ("source.pth", "x", "source.pth: unknown key"),
        ("source.event.user", "x", "source.event.user: unknown key"),
        ("source.options.delimiter", ";", "source.options.delimiter: unknown key"),
        ("source.intake.rows_per_batch", 5, "source.intake.rows_per_batch: unknown key"),
        ("metrics.traffic.measures", {"n": {"cuont": "*"}}, "metrics.traffic.measures.n.cuont: unknown key"),
        ("metrics.hot_items.lenght", "1 hour", "metrics.hot_items.lenght: unknown key"),
        ("resources.cores", 2, "resources.cores: unknown key"),
        ("time.watermark_delay", "ten seconds", "time.watermark_delay: 'ten seconds' is not a duration; write it like"),
        ("time.watermark_delay", 10, "time.watermark_delay: 10 is not a duration; write it like 10 seconds"),
        ("time.allowed_lateness", "-1 hour", "time.allowed_lateness: '-1 hour' is not a duration"),
        ("time.max_ahead", "99999999999999 days", "time.max_ahead: '99999999999999 days' is longer than any clock"),
        ("time.zone", "Mars/Olympus", "time.zone: 'Mars/Olympus' is not a time zone; use a name like Asia/Shanghai"),
        ("time.zone", "", "time.zone: '' is not a time zone"),
        ("time.zone", "Asia", "time.zone: 'Asia' is not a time zone"),
        ("time.zone", "../../etc/passwd", "time.zone: '../../etc/passwd' is not a time zone"),
        ("time.zone", 8, "time.zone: Input should be a valid string"),
        ("time.by", "guess", "time.by: Input should be 'event' or 'arrival'"),
        ("time.deduplicate_within", "1 minute", "time.deduplicate_within needs source.event.event_id"),
        ("job", "Clicks", "job: String should match pattern"),
        ("job", "../clicks", "job: String should match pattern"),
        ("job", "c" * 65, "job: String should match pattern"),
        ("job", "", "job: String should match pattern"),
        ("source.kind", "carrier_pigeon", "source: Input tag 'carrier_pigeon' found using 'kind' does not match"),
        ("source.format", "xml", "source.format: Input should be 'csv', 'json' or 'text'"),
        ("source.format", "text", "source: text lines have the one column `value`; leave `schema` out"),
        ("source.schema", None, "source: csv needs a `schema`"),
        ("source.path", "", "source.path: String should have at least 1 character"),
        ("source.event", {}, "source.event.event_at is missing; time.by: arrival does without it"),
        ("source.event.event_at", "", "source.event.event_at: String should have at least 1 character"),
        ("source.options", {"quote": "''"}, "source.options.quote: String should have at most 1 character"),
        ("source.intake", {"files_per_batch": 0}, "source.intake.files_per_batch: Input should be greater than"),
        ("source.rules", {"Known Action": "true"}, "source.rules.Known Action"),
        ("source", [], "source: Tuple should have at least 1 item"),
        ("metrics.traffic.grains", [], "metrics.traffic.grains: name at least one grain"),
        ("metrics.traffic.grains", ["7 minutes"], "metrics.traffic.grains: '7 minutes' does not divide a day"),
        ("metrics.traffic.grains", ["2 days"], "metrics.traffic.grains: '2 days' does not divide a day"),
        ("metrics.traffic.grains", ["100 ms"], "metrics.traffic.grains: '100 ms' does not divide a day"),
        ("metrics.traffic.grains", ["1 hour", "60 minutes"], "metrics.traffic.grains: the same grain is named twice"),
        ("metrics.traffic.measures", {"n": {}}, "metrics.traffic.measures.n: a measure has exactly one of count, sum"),
        ("metrics.traffic.measures", {"n": {"count": "*", "sum": "x"}}, "found ['count', 'sum']"),
        (
            "metrics.traffic.measures",
            {"n": {"sum": "x", "live": "exact"}},
            "`live` (sketch or exact) goes with `distinct`",
        ),
        ("metrics.traffic.measures", {"batch": {"count": "*"}}, "'batch' is the name of another column"),
        ("metrics.traffic.measures", {"window_end": {"count": "*"}}, "'window_end' is the name of another column"),
        ("metrics.traffic.measures", {"a": {"average": "x"}, "a_sum": {"sum": "x"}}, "'a_sum' is the name of another"),
        ("metrics.traffic.measures", {"unique_visitors_error": {"count": "*"}}, "'unique_visitors_error' is the name"),
        ("metrics.traffic.measures", {"order": {"count": "*"}}, "'order' is a word of SQL"),
        ("metrics.traffic.by", {"group": "item_id"}, "'group' is a word of SQL"),
        ("metrics.traffic.by", {"page_views": "item_id"}, "'page_views' is the name of another column"),
        ("metrics.traffic.by", ["item_id"], "'item_id' is not a dimension; write it like `province:"),
        (
            "metrics.hot_items",
            {"slide": "2 hours"},
            "metrics.hot_items: slide is at least 1 second and at most the length",
        ),
        ("metrics.hot_items", {"slide": "0 seconds"}, "metrics.hot_items: slide is at least 1 second"),
        ("metrics.hot_items", {"slide": "1500 ms", "length": "3 seconds"}, "length and slide are whole seconds"),
        ("metrics.hot_items", {"length": "30001 seconds", "slide": "3 hours"}, "more than 10,000 panes a window"),
        ("metrics.hot_items", {"top": 0}, "metrics.hot_items.top: Input should be greater than or equal to 1"),
        ("resources.driver_memory", "lots", "resources.driver_memory: String should match pattern"),
        ("resources.conf", {"java.home": "x"}, "resources.conf: 'java.home' is not a Spark setting"),
    ],
)
def test_what_is_wrong_is_told_by_the_path_of_its_field(load: Load, path: str, value: Any, told: str) -> None:
    assert told in refusal(load, changed(path, value))


def test_all_faults_are_told_at_once(load: Load) -> None:
    text = refusal(load, changed("time.zone", "Nowhere", changed("time.trigger", "often", changed("extra", 1))))
    for field in ("time.zone: ", "time.trigger: ", "extra: "):
        assert field in text


def test_of_several_sources_the_faulty_one_is_named_by_its_number(load: Load) -> None:
    assert "source[0].pth: unknown key" in refusal(
        load, changed("source", [MINIMAL["source"] | {"pth": 1}, JSON_LINES])
    )
    assert "source[1].port: unknown key" in refusal(
        load, changed("source", [MINIMAL["source"], JSON_LINES | {"port": 1}])
    )
    without_time = JSON_LINES | {"event": {"visitor_id": "user_id"}}
    told = refusal(load, changed("source", [MINIMAL["source"], without_time]))
    assert "source[1].event.event_at is missing" in told


def test_a_rule_may_have_the_name_of_a_kind_of_source(load: Load) -> None:
    told = refusal(load, changed("source.rules", {"files": ""}))
    assert "source.rules.files: " in told


def test_event_time_and_arrival_time_exclude_each_other(load: Load) -> None:
    told = refusal(load, changed("time.by", "arrival"))
    assert "source.event.event_at has no effect with time.by: arrival; remove one of the two" in told
    assert load(changed("time.by", "arrival", changed("source.event", {"visitor_id": "user_id"}))).time.by == "arrival"


def test_a_socket_has_neither_header_nor_wrong_ports(load: Load) -> None:
    assert load(changed("source", SOCKET)).source[0].place == "127.0.0.1:9999"
    assert "source.port: " in refusal(load, changed("source", SOCKET | {"port": 70_000}))
    with_header = SOCKET | {"format": "csv", "schema": "ts BIGINT", "options": {"header": True}}
    assert "a socket has no first line of a file" in refusal(load, changed("source", with_header))


def test_only_csv_has_a_header(load: Load) -> None:
    told = refusal(load, changed("source", JSON_LINES | {"options": {"header": True}}))
    assert "only csv files have a header" in told


def test_dimensions_may_be_a_list_or_a_mapping(load: Load) -> None:
    listed = load(changed("metrics.traffic.by", [{"a": "item_id"}, {"b": "category_id"}])).metrics.traffic.by
    assert listed == load(changed("metrics.traffic.by", {"a": "item_id", "b": "category_id"})).metrics.traffic.by


def test_ids_are_remembered_as_long_as_the_spec_says_even_for_no_time(load: Load) -> None:
    with_ids = changed("source.event.event_id", "user_id")
    assert load(with_ids).time.remember_ids == timedelta(minutes=10)
    assert load(changed("time.deduplicate_within", "0 seconds", with_ids)).time.remember_ids == timedelta()


def test_words_that_a_query_could_not_name_are_all_known() -> None:
    words = duckdb.sql("SELECT keyword_name FROM duckdb_keywords()").fetchall()
    for (word,) in words:
        try:
            duckdb.sql(f'SELECT {word}, max(1) OVER (PARTITION BY {word}) FROM (SELECT 1 AS "{word}") AS t').fetchall()
        except duckdb.Error:
            assert word in RESERVED_WORDS, word


@pytest.mark.parametrize(
    "text", ["job: [clicks", "\tjob: clicks", "job: clicks\n  source: {", "{{ jinja }}", "a: b: c"]
)
def test_what_is_not_yaml_is_told_with_its_place(load: Load, text: str) -> None:
    told = refusal(load, text)
    assert "is not YAML" in told or "spec: " in told


@pytest.mark.parametrize("text", ["", "just words", "- a\n- list", "42"])
def test_what_is_no_mapping_is_no_spec(load: Load, text: str) -> None:
    assert "spec: Input should be a valid dictionary" in refusal(load, text)


def test_a_missing_spec_names_the_jobs_that_exist(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"no spec at .*nothing\.yaml; known jobs: .*live_metrics.*--spec"):
        load_spec("nothing")
    with pytest.raises(UsageError, match=r"no spec at .*gone\.yaml"):
        load_spec("clicks", tmp_path / "gone.yaml")


def test_a_spec_that_cannot_be_read_is_told_so(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"cannot read the spec .*Is a directory"):
        load_spec("clicks", tmp_path)
    path = tmp_path / "clicks.yaml"
    path.write_bytes(b"job: \xff\xfe")
    with pytest.raises(UsageError, match=r"cannot read the spec .*utf-8"):
        load_spec("clicks", path)
    path.write_text("job: clicks")
    path.chmod(0)
    if not os.access(path, os.R_OK):  # whoever may read everything has nothing to be refused
        with pytest.raises(UsageError, match=r"cannot read the spec .*Permission denied"):
            load_spec("clicks", path)


def test_the_spec_of_another_job_is_refused(load: Load) -> None:
    assert "is the spec of job 'other', not of 'clicks'" in refusal(load, changed("job", "other"))


def test_the_home_is_the_option_then_the_environment_then_the_checkout(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TIDEMARK_HOME", str(tmp_path / "environment"))
    assert resolve_home(tmp_path / "option") == tmp_path / "option"
    assert resolve_home() == tmp_path / "environment"
    monkeypatch.delenv("TIDEMARK_HOME")
    assert resolve_home().name == ".tidemark"
    monkeypatch.chdir(tmp_path)
    assert resolve_home(Path("here")) == tmp_path / "here"


def test_a_home_that_is_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("")
    with pytest.raises(UsageError, match="is a file; choose a directory with --home"):
        resolve_home(tmp_path / "home")


@pytest.mark.parametrize("path", ["../outside", "landing/../../outside", "landing/../.."])
def test_a_source_that_leaves_the_home_is_refused(load: Load, tmp_path: Path, path: str) -> None:
    (source,) = load(changed("source.path", path)).source
    assert isinstance(source, FilesSource)
    with pytest.raises(UsageError, match=r"source.path .* leaves the home .*; make it absolute if that is meant"):
        source_path(tmp_path / "home", source)


def test_a_source_may_be_anywhere_when_its_path_is_absolute(load: Load, tmp_path: Path) -> None:
    (source,) = load(changed("source.path", str(tmp_path / "logs"))).source
    assert isinstance(source, FilesSource)
    assert source_path(tmp_path / "home", source) == tmp_path / "logs"
    (inside,) = load(changed("source.path", "landing/../elsewhere")).source
    assert isinstance(inside, FilesSource)
    assert source_path(tmp_path / "home", inside) == tmp_path / "home" / "elsewhere"
