"""`tidemark produce` and `tidemark land` as they are typed."""

import json
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from include.cli.land import land
from include.cli.produce import produce
from include.errors import UsageError

app = typer.Typer()
app.command()(produce)
app.command()(land)


def tidemark(home: Path, *words: str) -> dict[str, Any]:
    """What the command answers in JSON; its errors are raised."""
    result = CliRunner().invoke(app, [*words, "--home", str(home), "--json"], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return dict(json.loads(result.stdout))


def landed(home: Path) -> list[Path]:
    return sorted((home / "landing" / "clicks").glob("*"))


def test_rows_land_in_the_source_of_the_job_and_the_manifest_beside_it(tmp_path: Path) -> None:
    answer = tidemark(tmp_path, "produce", "--synthetic", "--rows", "500", "--files", "2", "--name", "mine")
    assert len(landed(tmp_path)) == answer["files"] == 2
    assert sum(file.read_text().count("\n") for file in landed(tmp_path)) == answer["rows"] == 500
    assert json.loads((tmp_path / "produced" / "mine.json").read_text()) == answer
    assert answer["complete"]


def test_start_and_span_decide_the_event_times(tmp_path: Path) -> None:
    words = ("--rows", "500", "--start", "2025-03-01T08:00:00+08:00", "--span", "1 minute")
    answer = tidemark(tmp_path, "produce", "--synthetic", *words)
    assert answer["oldest_event_at"].startswith("2025-03-01T00:00:0")
    assert answer["newest_event_at"].startswith("2025-03-01T00:00:5")


def test_every_fault_is_planted_as_typed(tmp_path: Path) -> None:
    faults = {"late": 0.3, "out-of-order": 0.25, "duplicate": 0.2, "malformed": 0.15, "future": 0.1}
    words = [word for fault, share in faults.items() for word in (f"--{fault}", str(share))]
    answer = tidemark(tmp_path, "produce", "--synthetic", "--rows", "10000", *words)
    planted = {fault.replace("_", "-"): count / 10_000 for fault, count in answer["planted"].items()}
    assert planted == pytest.approx(faults, abs=0.02)


def test_log_is_replayed_in_files_of_the_chosen_length(tmp_path: Path) -> None:
    log = tmp_path / "log.csv"
    log.write_text("1,2,3,pv,100\n1,2,3,pv,200\n1,2,3,pv,300\n")
    answer = tidemark(tmp_path, "produce", "--from", str(log), "--rows-per-file", "2")
    assert [file.read_text().count("\n") for file in landed(tmp_path)] == [2, 1]
    assert (answer["rows"], answer["shifted_seconds"]) == (3, 0)


def test_replay_shifts_by_the_separator_of_the_source(tmp_path: Path) -> None:
    log = tmp_path / "log.csv"
    log.write_text("1,2,3,pv,100\n1,2,3,pv,200\n")
    answer = tidemark(tmp_path, "produce", "--from", str(log), "--shift-to-now", "--time-column", "5")
    times = [int(line.split(",")[4]) - answer["shifted_seconds"] for line in landed(tmp_path)[0].read_text().split()]
    assert times == [100, 200]


def test_files_land_for_the_job(tmp_path: Path) -> None:
    log = tmp_path / "log.csv"
    log.write_text("1,2,3,pv,100\n")
    answer = tidemark(tmp_path, "land", str(log), str(log))
    assert [entry["landed"] for entry in answer["files"]] == [str(file) for file in landed(tmp_path)]
    assert len(landed(tmp_path)) == 2


def test_synthetic_clicks_have_the_header_that_the_source_expects(tmp_path: Path) -> None:
    tidemark(
        tmp_path, "produce", "--synthetic", "--rows", "5", "--spec", str(write_spec(tmp_path, "csv", "header: true"))
    )
    assert landed(tmp_path)[0].read_text().startswith("user_id,item_id")


def test_synthetic_clicks_are_refused_for_a_source_of_json(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="reads JSON"):
        tidemark(tmp_path, "produce", "--synthetic", "--rows", "5", "--spec", str(write_spec(tmp_path, "json")))


def write_spec(home: Path, kind: str, options: str = "") -> Path:
    path = home / "spec.yaml"
    path.write_text(
        f"job: live_metrics\nsource: {{kind: files, path: landing/clicks, format: {kind}, options: {{{options}}},"
        " schema: ts BIGINT, event: {event_at: timestamp_seconds(ts)}}\n"
    )
    return path


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("", "choose one of --synthetic and --from"),
        ("--synthetic --from x --rate 1", "choose one of --synthetic and --from"),
        ("--synthetic", "--rate N .* --rows N"),
        ("--synthetic --rows 5 --rate 5", "--rate N .* --rows N"),
        ("--synthetic --rows 5 --for 1s", "--for has no effect with --synthetic --rows"),
        ("--synthetic --rate 5 --span 1d", "--span has no effect with --synthetic --rate"),
        ("--from x --late 0.1", "--late has no effect with --from"),
        ("--from x --shift-to-now", "go together"),
        ("--from missing.csv", "missing.csv does not exist"),
        ("--synthetic --rows 5 --late 2", "lies between 0 and 1"),
        ("--synthetic --rows 5 --span soon", "--span: 'soon' is not a duration"),
        ("--synthetic --rows 5 --start monday", "'monday' is not an instant"),
        ("--synthetic --rows 5 --name ../x", "is not a name"),
        ("--synthetic --rows 5 --job nobody", "no spec at"),
    ],
)
def test_what_cannot_be_done_is_said_in_one_line_and_nothing_is_written(
    tmp_path: Path, words: str, message: str
) -> None:
    with pytest.raises(UsageError, match=message) as error:
        tidemark(tmp_path, "produce", *words.split())
    assert "\n" not in str(error.value)
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]
