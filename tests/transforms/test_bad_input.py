"""Bad input of every kind: a clear line, nothing lost, nothing half-written."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from pyspark.sql import SparkSession

from include.cli import app
from include.settings import PROJECT
from spark_jobs.contracts.tables import STREAM_TABLES
from spark_jobs.errors import JobLocked, SourceError, SpecError, TidemarkError
from spark_jobs.jobs.stream_live_metrics import LiveMetricsSettings, run
from spark_jobs.settings import FilesSource
from spark_jobs.sinks.epochs import lock_job
from spark_jobs.sources.files import planned_files
from tests.harness import CLICKS, ask, drain, exact, land_lines, make_spec, rows

pytestmark = [pytest.mark.spark, pytest.mark.full]
T = 1_600_000_000
CLICK = f"1,2,1,pv,{T}"
TIDEMARK = Path(sys.executable).with_name("tidemark")


def tables_of(home: Path) -> dict[str, list[dict[str, Any]]]:
    return {name: rows(home, name) for name in STREAM_TABLES}


def ledger(home: Path) -> list[tuple[Any, ...]]:
    return ask(home, "SELECT id, read, on_time, quarantined FROM batches WHERE NOT drained ORDER BY id")


# Expressions


def with_event(**fields: str) -> dict[str, Any]:
    return CLICKS | {"event": dict(CLICKS["event"]) | fields}  # type: ignore[arg-type]


def measuring(**measures: dict[str, str]) -> dict[str, Any]:
    return {"metrics": {"traffic": {"measures": measures}}}


@pytest.mark.parametrize(
    ("source", "sections", "told"),
    [
        (with_event(visitor_id="usr_id"), {}, "source.event.visitor_id: 'usr_id': .*usr_id.*user_id"),
        (with_event(item_id="cast(item_id AS"), {}, r"source.event.item_id: 'cast\(item_id AS': .*[Ss]yntax error"),
        (
            with_event(event_at="ts"),
            {},
            "source.event.event_at: 'ts' is a bigint, not a timestamp; use timestamp_seconds",
        ),
        (with_event(event_at="behavior"), {}, "source.event.event_at: 'behavior' is a string, not a timestamp"),
        (with_event(properties="behavior"), {}, "source.event.properties: 'behavior' is a string, not a map"),
        (with_event(item_id="map('a', item_id)"), {}, "source.event.item_id: .* is a map<.*, not a text or number"),
        (with_event(item_id="count(item_id)"), {}, r"source.event.item_id: 'count\(item_id\)': .*GROUP_BY"),
        (with_event(item_id="rand()"), {}, r"source.event.item_id: 'rand\(\)' gives another value each time"),
        (with_event(visitor_id="uuid()"), {}, r"source.event.visitor_id: 'uuid\(\)' gives another value each time"),
        (with_event(item_id="no_such_function(ts)"), {}, "source.event.item_id: .*no_such_function"),
        (with_event(item_id="explode(array(1, 2))"), {}, "source.event.item_id: .*generator"),
        (CLICKS | {"schema": "user_id BIGNIT"}, {}, "source.schema: 'user_id BIGNIT': .*BIGNIT"),
        (CLICKS | {"schema": "user_id BIGINT, user_id BIGINT, ts BIGINT"}, {}, "source.schema: .*user_id"),
        (
            CLICKS | {"rules": {"sane": "action + 1"}},
            {},
            r"source.rules.sane: 'action \+ 1' is a double, not true or false",
        ),
        (CLICKS | {"rules": {"sane": "acton = 'view'"}}, {}, "source.rules.sane: .*acton"),
        (CLICKS | {"rules": {"sane": "rand() < 0.5"}}, {}, "source.rules.sane: .* gives another value each time"),
        (CLICKS | {"rules": {"first": "row_number() OVER (ORDER BY ts) = 1"}}, {}, "source.rules.first: .* other rows"),
        ([CLICKS, with_event(item_id="itm")], {}, r"source\[1\].event.item_id: 'itm'"),
        (None, measuring(n={"count": "acton = 'buy'"}), "metrics.traffic.measures.n.count: .*acton"),
        (
            None,
            measuring(n={"count": "item_id"}),
            "metrics.traffic.measures.n.count: 'item_id' is a string, not true or",
        ),
        (
            None,
            measuring(n={"sum": "item_id"}),
            r"metrics.traffic.measures.n.sum: 'item_id' is a string.*decimal\(18,2\)",
        ),
        (
            None,
            measuring(n={"sum": "cast(item_id AS double)"}),
            r"metrics.traffic.measures.n.sum: .* is a double.*decimal",
        ),
        (None, measuring(n={"average": "cast(item_id AS float)"}), "metrics.traffic.measures.n.average: .* is a float"),
        (None, measuring(n={"max": "properties"}), r"metrics.traffic.measures.n.max: 'properties' is a map"),
        (None, measuring(n={"max": "ts"}), "metrics.traffic.measures.n.max: 'ts': .*ts"),
        (None, measuring(n={"distinct": "rand()"}), r"metrics.traffic.measures.n.distinct: .* another value each time"),
        (None, measuring(n={"distinct": "item_id", "where": "1"}), "metrics.traffic.measures.n.where: '1' is a int"),
        (None, measuring(n={"sum": "sum(1)"}), "metrics.traffic.measures.n.sum: .*GROUP_BY"),
        (None, {"metrics": {"traffic": {"by": {"where_from": "provnce"}}}}, "metrics.traffic.by.where_from: .*provnce"),
        (None, {"metrics": {"traffic": {"by": {"chance": "rand()"}}}}, "metrics.traffic.by.chance: .* each time"),
    ],
)
def test_a_wrong_expression_is_named_before_the_stream_starts(
    spark: SparkSession, home: Path, source: Any, sections: dict[str, Any], told: str
) -> None:
    with pytest.raises(SpecError, match=told) as refused:
        drain(spark, home, make_spec(source, **sections))
    assert "\n" not in str(refused.value)
    assert not home.exists(), "nothing was written"


def test_columns_may_be_named_like_fields_of_an_event_in_other_letters(spark: SparkSession, home: Path) -> None:
    source = CLICKS | {
        "schema": "User_ID BIGINT, ITEM_ID BIGINT, category_id BIGINT, Action STRING, ts BIGINT",
        "event": {"event_at": "timestamp_seconds(ts)", "item_id": "item_id", "action": "replace(action, 'pv', 'view')"},
        "rules": {"known": "action = 'view'"},
    }
    land_lines(home, [[CLICK, f"1,2,1,buy,{T}"]])
    drain(spark, home, make_spec(source))
    assert ledger(home) == [(0, 2, 1, 1)]
    assert ask(home, "SELECT item_id, action FROM events") == [("2", "view")]


def test_a_row_that_makes_an_expression_fail_is_malformed_and_the_stream_goes_on(
    spark: SparkSession, home: Path
) -> None:
    source = with_event(item_id="raise_error('no such item')", event_at="timestamp_seconds(ts div (item_id - 2))")
    land_lines(home, [[CLICK, f"1,3,1,pv,{T}"]])
    drain(spark, home, make_spec(source | {"rules": {}}))
    assert ledger(home) == [(0, 2, 1, 1)]
    assert ask(home, "SELECT raw, detail FROM quarantine") == [(CLICK, "event_at is null")]
    assert ask(home, "SELECT item_id FROM events") == [(None,)]


# Rows


ROWS: list[tuple[bytes, str | None]] = [  # a line, and why it is refused
    (CLICK.encode(), None),
    (b"", "empty line"),
    (b"    ", "empty line"),
    (b"\t", "does not fit the csv schema"),
    (b"garbage", "does not fit the csv schema"),
    (b"1,2,1,pv", "does not fit the csv schema"),
    (f"{CLICK},and more".encode(), "does not fit the csv schema"),
    (f"{CLICK},".encode(), "does not fit the csv schema"),
    (f"one,2,1,pv,{T}".encode(), "does not fit the csv schema"),
    (f"1,2.5,1,pv,{T}".encode(), "does not fit the csv schema"),
    (b"1,2,1,pv,", "event_at is null"),
    (b"1,2,1,pv,99999999999999999999", "does not fit the csv schema"),
    (b"1,2,1,pv,9223372036854775807", "event_at is null"),
    (b"1,2,1,pv,-9223372036854775808", "event_at is null"),
    (b"1,2,1,pv,9000000000000", "event_at is outside the years 2 to 9998"),
    (b"1,2,1,pv,-70000000000", "event_at is outside the years 2 to 9998"),
    (f'1,2,1,"pv,{T}'.encode(), "does not fit the csv schema"),
    (f"1,2,1,p\xff\xfev,{T}".encode("latin-1"), "known_action"),
    (b"1,2,1,\xc3", "does not fit the csv schema"),
    (f"\x001,2,1,pv,{T}".encode(), "does not fit the csv schema"),
    (b"1,2,1,pv,5", "dated"),
    (b"1,2,1,pv,4000000000", "event_at is later than the clock allows"),
    (f',,,"pv",{T}'.encode(), None),
    (f"9999999999999999999,2,1,pv,{T}".encode(), "does not fit the csv schema"),
    (f"1,2,1,pv,{T}\r".encode(), None),
    (("x" * 100_000).encode(), "does not fit the csv schema"),
    (CLICK.encode(), None),  # the last line has no end
]


@pytest.fixture(scope="module")
def odd_rows(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("odd rows")
    land_lines(home, [[]])
    (home / "landing" / "clicks" / "part-00000.csv").write_bytes(b"\n".join(line for line, _ in ROWS))
    drain(spark, home, make_spec())
    return home


def test_every_odd_row_is_quarantined_with_its_reason_and_its_text(odd_rows: Path) -> None:
    held = ask(odd_rows, "SELECT position, raw, detail FROM quarantine ORDER BY position")
    wanted = [
        (position, line.decode(errors="replace"), reason) for position, (line, reason) in enumerate(ROWS) if reason
    ]
    assert [(position, reason) for position, _, reason in held] == [
        (position, reason) for position, _, reason in wanted
    ]
    assert [raw for _, raw, _ in held] == [raw for _, raw, _ in wanted], "bytes that are no text are replaced"


def test_sound_rows_beside_odd_ones_are_counted(odd_rows: Path) -> None:
    sound = [position for position, (_, reason) in enumerate(ROWS) if not reason]
    assert ask(odd_rows, "SELECT position FROM events ORDER BY position") == [(position,) for position in sound]
    assert ledger(odd_rows) == [(0, len(ROWS), len(sound), len(ROWS) - len(sound))], "blank lines are read, too"


# Files


def test_empty_files_are_batches_and_an_empty_directory_is_none(spark: SparkSession, home: Path) -> None:
    totals = drain(spark, home, make_spec())
    assert set(totals.values()) == {0}
    assert tables_of(home) == {name: [] for name in STREAM_TABLES}
    assert ask(home, "SELECT * FROM traffic") == []
    land_lines(home, [[], [CLICK], []])
    totals = drain(spark, home, make_spec())
    assert (totals["read"], totals["on_time"]) == (1, 1)
    assert ledger(home) == [(0, 0, 0, 0), (1, 1, 1, 0), (2, 0, 0, 0)]
    marks = ask(home, "SELECT watermark_before, watermark_after FROM batches WHERE NOT drained ORDER BY id")
    assert marks[0] == (None, None)
    assert marks[1][1] == marks[2][0] == marks[2][1]


def test_odd_names_of_directories_and_files_hide_nothing(spark: SparkSession, tmp_path: Path) -> None:
    home = tmp_path / "a [b] {c,d} *? é"
    land_lines(home, [[CLICK], [CLICK], [CLICK]])
    landing = home / "landing" / "clicks"
    (landing / "part-00001.csv").rename(landing / "a [1] {b} %20 #?*é.csv")
    (landing / "part-00002.csv").rename(landing / "a\\b+c&d=e;'\".csv")
    drain(spark, home, make_spec())
    assert ledger(home) == [(0, 1, 1, 0), (1, 1, 1, 0), (2, 1, 1, 0)]


@pytest.mark.xfail(
    strict=True, reason="Hadoop's checksums choke on a colon in a file name; RawLocalFileSystem would not"
)
def test_a_colon_in_the_name_of_a_file_does_no_harm(spark: SparkSession, home: Path) -> None:
    land_lines(home, [[CLICK]])
    file = home / "landing" / "clicks" / "part-00000.csv"
    file.rename(file.with_name("2024-01-01T00:00.csv"))
    drain(spark, home, make_spec())
    assert ledger(home) == [(0, 1, 1, 0)]


def once_after(batch: int, point: str, act: Callable[[], object]) -> Callable[[str], None]:
    """Act when `point` is reached for the nth time, counted from batch 0."""
    left = [batch]

    def reached(name: str) -> None:
        if name == point:
            if left[0] == 0:
                act()
            left[0] -= 1

    return reached


@pytest.mark.parametrize(
    ("batch", "point", "told"),
    [(0, "after batches", "vanished after batch 1 was planned"), (1, "after offsets", "vanished while it was read")],
)
def test_a_file_that_vanishes_stops_the_run_and_put_back_lets_it_go_on(
    spark: SparkSession, home: Path, batch: int, point: str, told: str
) -> None:
    land_lines(home, [[CLICK], [CLICK, CLICK]])
    file = home / "landing" / "clicks" / "part-00001.csv"
    kept = home / "kept.csv"
    reached = once_after(batch, point, lambda: file.rename(kept))
    with pytest.raises(SourceError, match=f"part-00001.csv {told}.*put it back and start again.*runbook"):
        drain(spark, home, make_spec(), reached=reached)
    assert ledger(home) == [(0, 1, 1, 0)], "nothing of the batch was written"
    with pytest.raises(SourceError, match=r"part-00001\.csv vanished"):
        drain(spark, home, make_spec())
    kept.rename(file)
    drain(spark, home, make_spec())
    assert ledger(home) == [(0, 1, 1, 0), (1, 2, 2, 0)]


def test_a_replayed_batch_refuses_a_file_that_changed(spark: SparkSession, home: Path) -> None:
    land_lines(home, [[CLICK], []])

    def fail() -> None:
        raise TidemarkError("planted fault")

    landing = home / "landing" / "clicks"
    with pytest.raises(TidemarkError, match=r"^planted fault$"):
        drain(spark, home, make_spec(), reached=once_after(0, "after events", fail))
    (landing / "part-00000.csv").write_text(f"{CLICK}\n{CLICK}\n")
    with pytest.raises(
        SourceError, match=r"part-00000.csv is not as it was when batch 0 began; put the old content back"
    ):
        drain(spark, home, make_spec())
    assert ask(home, "SELECT * FROM events") == [], "for readers the batch does not exist"
    (landing / "part-00000.csv").write_text(f"{CLICK}\n")
    drain(spark, home, make_spec())
    assert ledger(home) == [(0, 1, 1, 0), (1, 0, 0, 0)]
    assert len(rows(home, "events")) == 1

    land_lines(home, [[CLICK]], first=2)
    with pytest.raises(TidemarkError, match=r"^planted fault$"):
        drain(spark, home, make_spec(), reached=once_after(0, "after batch record", fail))
    other = make_spec(CLICKS | {"rules": {}})
    with pytest.raises(SpecError, match="batch 2 began with other sources, rules or times than the spec has now"):
        drain(spark, home, other)
    drain(spark, home, make_spec())
    assert ledger(home)[2:] == [(2, 1, 1, 0)]


def test_lines_appended_to_a_file_that_was_read_are_not_seen(spark: SparkSession, home: Path) -> None:
    land_lines(home, [[CLICK]])
    drain(spark, home, make_spec())
    before = tables_of(home)
    with (home / "landing" / "clicks" / "part-00000.csv").open("a") as file:
        file.write(f"{CLICK}\n")
    drain(spark, home, make_spec())
    assert tables_of(home) == before
    land_lines(home, [[CLICK]], first=1)
    drain(spark, home, make_spec())
    assert ledger(home) == [(0, 1, 1, 0), (1, 1, 1, 0)], "in a file of their own they are"


def test_the_files_of_a_batch_are_found_in_a_log_that_sums_up_all_before(tmp_path: Path) -> None:
    """Spark writes every so often one entry with all files it ever saw; it may be large."""
    offsets, log = tmp_path / "offsets", tmp_path / "sources" / "0"
    offsets.mkdir()
    log.mkdir(parents=True)
    for batch, position in ((6, "398"), (7, "399"), (8, "399"), (9, "401")):
        other = "-" if batch < 8 else "17"  # a socket
        (offsets / str(batch)).write_text(f'v1\n{{"batchWatermarkMs":0}}\n{{"logOffset":{position}}}\n{other}')

    def noted(name: str, number: int) -> str:
        return json.dumps({"path": f"file:///a%20b/{name}.csv", "timestamp": 1, "batchId": number})

    history = [noted(f"{'long' * 20}-{number}", number) for number in range(399) for _ in range(25)]
    own = [noted(f"new-{number}", 399) for number in range(12_000)]
    (log / "399.compact").write_text("\n".join(["v1", *history, *own]))
    for number in (398, 400, 401):
        (log / str(number)).write_text(f"v1\n{noted(f'plain-{number}', number)}")
    assert planned_files(tmp_path, 7) == [Path(f"/a b/new-{number}.csv") for number in range(12_000)]
    assert planned_files(tmp_path, 8) == []
    assert planned_files(tmp_path, 9) == [Path("/a b/plain-400.csv"), Path("/a b/plain-401.csv")]
    assert planned_files(tmp_path, 10) == [], "not planned yet"


def test_a_source_in_the_users_own_directory_is_found_there(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    spec = make_spec(CLICKS | {"path": "~/logs"})
    (source,) = spec.source
    assert isinstance(source, FilesSource)
    assert LiveMetricsSettings(home=tmp_path / "home", spec=spec).directory(source) == tmp_path / "logs"


# Changed specs and second drivers


def shaped(**changes: Any) -> Any:
    traffic = {
        "grains": ["1 minute", "1 hour"],
        "measures": {"paid": {"sum": "cast(item_id AS int)"}, "unique_visitors": exact("visitor_id")},
        "by": {"kind": "category_id"},
    }
    hot = {"length": "1 hour", "slide": "5 minutes"}
    return make_spec(
        changes.get("source"),
        time={"zone": "UTC"} | changes.get("time", {}),
        metrics={"traffic": traffic | changes.get("traffic", {}), "hot_items": hot | changes.get("hot", {})},
    )


@pytest.fixture(scope="module")
def begun(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("begun")
    land_lines(home, [[CLICK]])
    drain(spark, home, shaped())
    return home


WITHOUT_TIME = CLICKS | {"rules": {}, "event": {"visitor_id": "user_id", "item_id": "item_id"}}


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"time": {"zone": "Asia/Shanghai"}}, "time.zone was 'UTC' when job clicks began and is 'Asia/Shanghai' now"),
        ({"time": {"by": "arrival"}, "source": WITHOUT_TIME}, "time.by was 'event'"),
        ({"traffic": {"grains": ["1 minute"]}}, "metrics.traffic.grains was"),
        ({"traffic": {"by": {}}}, "metrics.traffic.by was"),
        ({"traffic": {"by": {"kind": "item_id"}}}, "metrics.traffic.by was"),
        ({"hot": {"length": "2 hours"}}, "metrics.hot_items.length was"),
        ({"hot": {"slide": "1 minute"}}, "metrics.hot_items.slide was"),
        ({"hot": {"action": "buy"}}, "metrics.hot_items.action was"),
        ({"source": CLICKS | {"path": "landing/other"}}, "source .*was .*landing/clicks.* is .*landing/other"),
        ({"source": [CLICKS, CLICKS | {"path": "landing/other"}]}, "source .*was"),
        (
            {
                "traffic": {
                    "measures": {"paid": {"max": "cast(item_id AS int)"}, "unique_visitors": exact("visitor_id")}
                }
            },
            "metrics.traffic.measures.paid was",
        ),
        (
            {"traffic": {"measures": {"paid": {"sum": "cast(item_id AS int)"}}}},
            "metrics.traffic.measures.unique_visitors was",
        ),
    ],
)
def test_a_change_that_old_numbers_do_not_fit_is_refused_by_name(
    spark: SparkSession, begun: Path, changes: dict[str, Any], told: str
) -> None:
    before = tables_of(begun)
    with pytest.raises(SpecError, match=told) as refused:
        drain(spark, begun, shaped(**changes))
    assert "change it back, or run the new spec under another job name" in str(refused.value)
    assert tables_of(begun) == before


def test_changes_that_old_numbers_fit_are_taken_and_the_old_spec_still_works(spark: SparkSession, begun: Path) -> None:
    before = tables_of(begun)
    taken = shaped(time={"watermark_delay": "1 minute"}, hot={"top": 3}, source=CLICKS | {"rules": {}})
    assert drain(spark, begun, taken) == drain(spark, begun, shaped())
    assert tables_of(begun) == before


def test_a_second_driver_of_the_same_job_is_refused_and_changes_nothing(spark: SparkSession, begun: Path) -> None:
    before, epoch = tables_of(begun), (begun / "jobs" / "clicks" / "epoch").read_text()
    with (
        lock_job(begun / "jobs" / "clicks" / "lock"),
        pytest.raises(JobLocked, match=r"clicks already runs as process \d+; stop it first"),
    ):
        drain(spark, begun, shaped())
    assert tables_of(begun) == before
    assert (begun / "jobs" / "clicks" / "epoch").read_text() == epoch
    drain(spark, begun, shaped())


def test_a_source_that_is_a_file_is_told_so(spark: SparkSession, home: Path) -> None:
    (home / "landing").mkdir(parents=True)
    (home / "landing" / "clicks").write_text(CLICK)
    with pytest.raises((TidemarkError, OSError), match="landing/clicks"):
        run(spark, LiveMetricsSettings(home=home, spec=make_spec(), drain=True))


# The command line


def write_spec(folder: Path, **changes: Any) -> Path:
    spec = make_spec().model_dump(mode="json", by_alias=True, exclude_none=True) | changes
    path = folder / "clicks.yaml"
    path.write_text(yaml.safe_dump(spec))
    return path


def tidemark(
    *arguments: object, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> tuple[Any, str]:
    """Exit code and standard error of a command in this process."""
    monkeypatch.setattr(sys, "argv", ["tidemark", *map(str, arguments)])
    with pytest.raises(SystemExit) as ended:
        app.main()
    return ended.value.code, capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (
            ["query", "SELECT * FROM trafic", "--job", "clicks", "--home", "{home}"],
            "there is no table trafic; did you mean",
        ),
        (["query", "DROP TABLE events", "--job", "clicks", "--home", "{home}"], "queries only read"),
        (["query", "SELECT 1", "--job", "clicks", "--home", "{tmp}"], "job clicks has no tables under"),
        (["query", "SELECT 1", "--job", "../../etc", "--home", "{home}"], "has no tables under"),
        (["query", "SELECT 1", "--home", "{file}"], "is a file; choose a directory with --home"),
        (["run", "clicks", "--spec", "{tmp}/gone.yaml"], "no spec at"),
        (["run", "../clicks"], "no spec at"),
        (["run", "other", "--spec", "{spec}"], "is the spec of job 'clicks', not of 'other'"),
        (["run", "clicks", "--spec", "{outside}", "--home", "{tmp}"], "leaves the home"),
        (["land", "{tmp}/gone.csv", "--job", "clicks", "--spec", "{spec}", "--home", "{tmp}"], "gone.csv"),
    ],
)
def test_a_command_that_cannot_be_done_ends_with_one_line_and_a_code(
    begun: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    told: str,
) -> None:
    (tmp_path / "inside").mkdir()
    outside = write_spec(tmp_path / "inside", source=CLICKS | {"path": "../outside"})
    file = tmp_path / "file"
    file.write_text("")
    places = {"home": begun, "tmp": tmp_path, "file": file, "spec": write_spec(tmp_path), "outside": outside}
    filled = [text.format(**places) for text in arguments]
    code, error = tidemark(*filled, capsys=capsys, monkeypatch=monkeypatch)
    assert code == 2
    assert error.startswith("error: ")
    assert told in error
    assert error.count("\n") == 1


def test_the_installed_command_tells_a_wrong_spec_in_one_line(tmp_path: Path) -> None:
    spec = write_spec(tmp_path, time={"zome": "UTC"})
    ended = subprocess.run(
        [TIDEMARK, "run", "clicks", "--drain", "--spec", spec, "--home", tmp_path / "home"],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr == f"error: {spec}: time.zome: unknown key\n"
    assert not (tmp_path / "home").exists()


def test_the_installed_command_tells_a_wrong_expression_in_one_line(tmp_path: Path) -> None:
    spec = write_spec(tmp_path, source=with_event(item_id="itm"))
    ended = subprocess.run(
        [TIDEMARK, "run", "clicks", "--drain", "--spec", spec, "--home", tmp_path / "home"],
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
        cwd=PROJECT,
    )
    assert ended.returncode == 1
    (line,) = (line for line in ended.stderr.splitlines() if line.startswith("error: "))
    assert "source.event.item_id: 'itm'" in line
    assert "Traceback" not in ended.stderr
    assert not (tmp_path / "home" / "warehouse").exists(), "nothing was written"
