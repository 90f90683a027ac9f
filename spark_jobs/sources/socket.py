"""Lines from a socket, for trying things out: what was sent cannot be read again."""

import logging

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from spark_jobs.settings import SocketSource

log = logging.getLogger(__name__)


def open_socket(spark: SparkSession, source: SocketSource) -> DataFrame:
    """RAW rows, dated when they arrived."""
    log.warning(
        "source socket://%s:%d cannot be re-read: lines of a batch that dies are lost; use files or Kafka in earnest",
        source.host,
        source.port,
    )
    lines = (
        spark.readStream.format("socket")
        .option("host", source.host)
        .option("port", source.port)
        .option("includeTimestamp", True)
        .load()
    )
    return lines.select(
        F.make_valid_utf8("value").alias("__value"),
        F.lit(f"socket://{source.host}:{source.port}").alias("__source"),
        F.lit(0).cast("bigint").alias("__block"),
        F.col("timestamp").alias("__arrived"),
    )
