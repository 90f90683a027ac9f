"""Files into a landing directory, so that the stream sees each whole, once, and in the order given.

A file source takes files by modification time, in milliseconds, and equal times have no order. A file is
therefore written under a hidden name, dated later than every file before it, and then renamed. The date leads its
name, so that names sort in the same order, none replaces another, and none begins with `.` or `_`, which Spark hides.
"""

import gzip
import os
import re
import shutil
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, NamedTuple

from include.errors import UsageError

NAME_BYTES = 200
_NOT_IN_HADOOP_PATHS = re.compile(r"[:*?\[\]{}\\\x00-\x1f\x7f]")


class Landed(NamedTuple):
    """A user's file and the name it is read under."""

    source: Path
    path: Path
    bytes: int


@dataclass(frozen=True)
class Staged:
    """A hidden file that waits for its name."""

    hidden: Path
    path: Path
    modified_ms: int

    def publish(self) -> Path:
        os.utime(self.hidden, ns=(self.modified_ms * 1_000_000,) * 2)
        os.rename(self.hidden, self.path)
        return self.path

    def discard(self) -> None:
        self.hidden.unlink(missing_ok=True)


class Landing:
    """A landing directory, made if it is missing; every file put in is newer than all that were there."""

    def __init__(self, directory: Path, clock: Callable[[], float] = time.time) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.directory = directory
        self._clock = clock
        self._newest_ms = newest_ms(directory)

    def stage(self, name: str) -> Staged:
        """Claim the next time and the name that goes with it."""
        while True:
            self._newest_ms = max(int(self._clock() * 1000), self._newest_ms + 1)
            path = self.directory / f"{self._newest_ms:013d}-{landing_name(name)}"
            staged = Staged(path.with_name(f".{path.name}"), path, self._newest_ms)
            try:
                staged.hidden.touch(exist_ok=False)
            except FileExistsError:
                continue
            if not path.exists():
                return staged
            staged.discard()

    @contextmanager
    def file(self, name: str) -> Iterator[BinaryIO]:
        """A file to write to; it appears when the block ends, and not at all if the block fails."""
        staged = self.stage(name)
        try:
            with staged.hidden.open("wb") as out:
                yield out
            staged.publish()
        except BaseException:
            staged.discard()
            raise


def land(files: Sequence[Path], directory: Path, report: Callable[[Path], None] = lambda _: None) -> list[Landed]:
    """Copies of `files`, landed in the order given: all of them, or none. `report` hears of each finished copy."""
    refuse_unlandable(files, directory)
    landing = Landing(directory)
    staged: list[Staged] = []
    try:
        for file in files:
            staged.append(landing.stage(file.name))
            with file.open("rb") as source, staged[-1].hidden.open("wb") as copy:
                shutil.copyfileobj(source, copy, 1 << 20)
            report(file)
    except BaseException:
        for copied in staged:
            copied.discard()
        raise
    sizes = [copied.hidden.stat().st_size for copied in staged]
    return [Landed(*row) for row in zip(files, (copied.publish() for copied in staged), sizes, strict=True)]


def refuse_unlandable(files: Sequence[Path], directory: Path) -> None:
    """Raise one error that names every file the stream could not read, before anything is landed."""
    if reasons := [reason for file in files if (reason := why_unlandable(file, directory))]:
        raise UsageError(f"nothing landed: {'; '.join(reasons)}")


def why_unlandable(file: Path, directory: Path) -> str | None:
    if file.is_dir():
        return f"{file} is a directory (name the files in it)"
    if not file.exists():
        return f"{file} does not exist"
    if not file.is_file():
        return f"{file} is not a regular file"
    if file.resolve().parent == directory.resolve():
        return f"{file} is in the landing directory already"
    try:
        with file.open("rb"):
            pass
    except OSError as error:
        return f"{file} cannot be read ({error.strerror})"
    return None if file.suffix != ".gz" or is_whole_gzip(file) else f"{file} is not a whole gzip file"


def is_whole_gzip(file: Path) -> bool:
    """Whether all of it unpacks: a cut-off file would end the stream that reads it."""
    try:
        with gzip.open(file) as content:
            while content.read(1 << 20):
                pass
    except (EOFError, gzip.BadGzipFile, zlib.error):
        return False
    return True


def newest_ms(directory: Path) -> int:
    """The latest modification time in `directory`, in whole milliseconds, rounded up; 0 where it is empty."""
    with os.scandir(directory) as entries:
        return max((-(-entry.stat(follow_symlinks=False).st_mtime_ns // 1_000_000) for entry in entries), default=0)


def landing_name(name: str) -> str:
    """`name` as Hadoop can read it: no sign of a glob or a scheme, and short enough to take a prefix."""
    readable = _NOT_IN_HADOOP_PATHS.sub("-", name).removesuffix("._COPYING_")
    return os.fsencode(readable)[-NAME_BYTES:].decode(errors="ignore")
