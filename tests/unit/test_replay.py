"""A real log landed again: the same lines, in order, at the speed asked for."""

import gzip
from pathlib import Path

import pytest

from include.errors import UsageError
from include.producer.landing import Landing
from include.producer.pace import Clock
from include.producer.replay import Replay, TimeColumn, seconds_to_now

LOG = b"a,100\r\nb,oops\r\n\r\nc,160\r\nd\r\ne,130,cut"


class RecordingClock:
    """Remembers what was waited for."""

    def __init__(self) -> None:
        self.at = 0.0
        self.waits: list[float] = []

    def now(self) -> float:
        return self.at

    def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.at += seconds


@pytest.fixture
def log(tmp_path: Path) -> Path:
    file = tmp_path / "access.log"
    file.write_bytes(LOG)
    return file


def landed(directory: Path) -> list[bytes]:
    return [file.read_bytes() for file in sorted(directory.iterdir())]


def test_lines_land_as_they_were_in_files_of_the_chosen_length(log: Path, tmp_path: Path) -> None:
    replay = Replay(log, Landing(tmp_path / "landing"), rows_per_file=4)
    replay.run()
    assert b"".join(landed(tmp_path / "landing")) == LOG
    assert [content.count(b"\n") for content in landed(tmp_path / "landing")] == [4, 1]
    assert (replay.rows, replay.files) == (6, 2)


def test_gzip_log_lands_as_plain_lines(tmp_path: Path) -> None:
    file = tmp_path / "access.log.gz"
    file.write_bytes(gzip.compress(LOG))
    Replay(file, Landing(tmp_path / "landing"), rows_per_file=100).run()
    assert landed(tmp_path / "landing") == [LOG]
    assert all(path.suffix == ".log" for path in (tmp_path / "landing").iterdir())


def test_header_leads_every_landed_file_and_is_no_row(log: Path, tmp_path: Path) -> None:
    replay = Replay(log, Landing(tmp_path / "landing"), rows_per_file=3, with_header=True)
    replay.run()
    assert [content.split(b"\r\n")[0] for content in landed(tmp_path / "landing")] == [b"a,100", b"a,100"]
    assert replay.rows == 5


def test_file_appears_when_its_last_line_is_due(log: Path, tmp_path: Path) -> None:
    clock = RecordingClock()
    Replay(log, Landing(tmp_path / "landing"), rows_per_file=4, rate=8).run(Clock(clock.now, clock.sleep))
    assert clock.waits == [0.5, 0.25]


def test_without_a_rate_nobody_waits(log: Path, tmp_path: Path) -> None:
    clock = RecordingClock()
    Replay(log, Landing(tmp_path / "landing"), rows_per_file=1).run(Clock(clock.now, clock.sleep))
    assert clock.waits == []


def test_shift_moves_the_newest_time_to_now_and_leaves_other_lines_alone(log: Path, tmp_path: Path) -> None:
    column = TimeColumn(2)
    shift = (column, seconds_to_now(log, column, now=1_000.9))
    Replay(log, Landing(tmp_path / "landing"), rows_per_file=100, shift=shift).run()
    assert landed(tmp_path / "landing") == [b"a,940\r\nb,oops\r\n\r\nc,1000\r\nd\r\ne,970,cut"]


def test_other_separators_are_possible() -> None:
    assert TimeColumn(1, b"\t").shift(b"100\tx\n", 5) == b"105\tx\n"


def test_log_without_times_in_the_column_is_refused(log: Path) -> None:
    with pytest.raises(UsageError, match="no whole number in column 1"):
        seconds_to_now(log, TimeColumn(1), now=0)


def test_empty_log_lands_no_file(tmp_path: Path) -> None:
    (tmp_path / "empty.log").touch()
    replay = Replay(tmp_path / "empty.log", Landing(tmp_path / "landing"), rows_per_file=1, with_header=True)
    replay.run()
    assert replay.files == len(list((tmp_path / "landing").iterdir())) == 0
