"""A real log landed again, line by line in the order of its file, at a chosen speed."""

import gzip
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, cast

from include.errors import UsageError
from include.producer.landing import Landing
from include.producer.pace import Clock, Progress, Report, silent


@dataclass(frozen=True)
class TimeColumn:
    """Where a line holds its event time in epoch seconds; columns are counted from 1."""

    column: int
    sep: bytes = b","

    def read(self, line: bytes) -> int | None:
        """The event time, or None where the line has none."""
        columns = line.rstrip(b"\r\n").split(self.sep)
        try:
            return int(columns[self.column - 1])
        except (IndexError, ValueError):
            return None

    def shift(self, line: bytes, seconds: int) -> bytes:
        """The line with its event time moved; a line without one stays as it is."""
        if (found := self.read(line)) is None:
            return line
        body = line.rstrip(b"\r\n")
        columns = body.split(self.sep)
        columns[self.column - 1] = b"%d" % (found + seconds)
        return self.sep.join(columns) + line[len(body) :]


@dataclass
class Replay:
    """A file to land again, and how much of it has landed."""

    file: Path
    landing: Landing
    rows_per_file: int
    rate: float | None = None  # lines a second; as fast as possible without one
    with_header: bool = False  # the first line is then the first of every landed file
    shift: tuple[TimeColumn, int] | None = None  # by how many seconds
    rows: int = 0
    files: int = 0

    def run(self, clock: Clock | None = None, report: Report = silent) -> None:
        """Land all lines; a file appears when its last line is due."""
        clock = clock or Clock()
        with open_lines(self.file) as lines:
            header = next(lines, b"") if self.with_header else b""
            while chunk := list(islice(lines, self.rows_per_file)):
                if self.rate:
                    clock.wait_until((self.rows + len(chunk)) / self.rate)
                self._write(header, chunk)
                report(Progress(self.rows, self.files, clock.elapsed()))

    def as_json(self) -> dict[str, Any]:
        return {
            "kind": "replay",
            "from": str(self.file),
            "shifted_seconds": self.shift[1] if self.shift else 0,
            "files": self.files,
            "rows": self.rows,
        }

    def _write(self, header: bytes, lines: list[bytes]) -> None:
        with self.landing.file(landed_name(self.file, self.files)) as out:
            out.write(header)
            out.writelines(self._shifted(lines))
        self.rows += len(lines)
        self.files += 1

    def _shifted(self, lines: list[bytes]) -> Iterable[bytes]:
        if self.shift is None:
            return lines
        time, seconds = self.shift
        return (time.shift(line, seconds) for line in lines)


def seconds_to_now(file: Path, time: TimeColumn, now: float) -> int:
    """How far the event times of `file` have to move for the newest to be `now`."""
    with open_lines(file) as lines:
        newest = max((at for line in lines if (at := time.read(line)) is not None), default=None)
    if newest is None:
        raise UsageError(f"{file} has no whole number in column {time.column}; see --time-column and --sep")
    return int(now) - newest


def open_lines(file: Path) -> BinaryIO:
    """The lines of a plain or gzip file, with their ends."""
    return cast(BinaryIO, gzip.open(file, "rb")) if file.suffix == ".gz" else file.open("rb")


def landed_name(file: Path, number: int) -> str:
    """`access.log.gz` becomes `access-000007.log`: what is landed is plain, and says which part it is."""
    plain = file.with_suffix("") if file.suffix == ".gz" else file
    return f"{plain.stem}-{number:06d}{plain.suffix}"
