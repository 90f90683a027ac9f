"""A directory of files, moved in atomically: csv, json lines or text, plain or gz."""

from pathlib import Path
from urllib.parse import unquote, urlparse

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from spark_jobs.settings import FilesSource

NEVER = "365000d"
"""Spark ignores files much older than the newest one, silently, unless their age may be this high."""


def open_files(spark: SparkSession, source: FilesSource, directory: Path) -> DataFrame:
    """RAW rows of the directory's files in the order of their modification times.

    A partition holds one block of one file (see session.py), so a row's place in its partition is its place in the file.
    """
    directory.mkdir(parents=True, exist_ok=True)
    lines = (
        spark.readStream.format("text")
        .option("maxFilesPerTrigger", source.intake.files_per_batch)
        .option("maxFileAge", NEVER)
        .load(str(directory).replace("\\", "\\\\"))
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
