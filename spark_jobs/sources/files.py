"""A directory of files, moved in atomically: csv, json lines or text, plain or gz."""

import json
import os
import re
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from spark_jobs.settings import FilesSource
from spark_jobs.sources.checkpoint import positions

NEVER = "365000d"
"""Spark ignores files much older than the newest one, silently, unless their age may be this high."""


def open_files(spark: SparkSession, source: FilesSource, directory: Path) -> DataFrame:
    """RAW rows of the directory's files in the order of their modification times.

    A partition holds one block of one file (see session.py): a row's place in its partition is its place in the file.
    """
    directory.mkdir(parents=True, exist_ok=True)
    lines = (
        spark.readStream.format("text")
        .option("maxFilesPerTrigger", source.intake.files_per_batch)
        .option("maxFileAge", NEVER)
        .load(re.sub(r"([\\*?\[\]{}])", r"\\\1", str(directory)))  # Spark would take it for a pattern
    )
    return lines.select(
        F.make_valid_utf8("value").alias("__value"),
        F.col("_metadata.file_path").alias("__source"),
        F.col("_metadata.file_block_start").alias("__block"),
        F.col("_metadata.file_modification_time").alias("__arrived"),
    )


def local_path(uri: str) -> Path:
    """The path that Spark's `file:` address of a file means."""
    return Path(unquote(urlparse(uri).path))


def archive(path: Path, home: Path) -> None:
    """Move a file that is long counted out of the home's landing, which Spark lists whole at every trigger.

    Files that lie elsewhere are the user's and stay.
    """
    landing = home / "landing"
    if path.is_relative_to(landing) and path.exists():
        target = home / "archive" / path.relative_to(landing)
        target.parent.mkdir(parents=True, exist_ok=True)
        path.rename(target)


def planned_files(checkpoint: Path, batch: int) -> list[Path]:
    """The files that Spark planned the batch with, of all sources. One that vanished since it skips without a word."""
    before = positions(checkpoint, batch - 1)
    return [
        local_path(file["path"])
        for source, last in positions(checkpoint, batch).items()
        for number in range(before.get(source, -1) + 1, last + 1)
        for file in _noted(checkpoint / "sources" / str(source), number)
    ]


def _noted(log: Path, number: int, block: int = 1 << 20) -> list[dict[str, Any]]:
    """The files of one entry. An entry that sums up all before it has its own last, and is not read whole."""
    path = log / str(number)
    with (path if path.exists() else path.with_name(f"{number}.compact")).open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(size - block, 0))
        files = [json.loads(line) for line in file.read().split(b"\n")[1:]]  # before it: the version, or half a file
    own = [file for file in files if file["batchId"] == number]
    return own if len(own) < len(files) or block >= size else _noted(log, number, block * 8)
