"""The same windows by Spark's own `window()` aggregation: one query a window, state in Spark's state store.

Run as `python -m benchmarks.engines.spark_job CLICKS_FOLDER FILES_PER_BATCH OUT`. In single
trials, RocksDB state was slower than the default store and `approx_count_distinct` slower than `hll_sketch_agg`; closed
windows are ranked inside `foreachBatch`, which spares writing every item of every window.
"""

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from benchmarks.windows import CORES, GRAINS, HEAP_GB, HOT_LENGTH, HOT_SLIDE, HOT_TOP, WATERMARK_SECONDS

LG_K = 14
_SETTINGS = {
    "spark.driver.memory": f"{HEAP_GB}g",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.sql.shuffle.partitions": str(CORES),
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    # The other manager starts about a hundred small processes a batch.
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
}


def read_views(spark: SparkSession, clicks: str, files_per_batch: int) -> DataFrame:
    rows = (
        spark.readStream.schema("user_id BIGINT, item_id BIGINT, category_id BIGINT, behavior STRING, ts BIGINT")
        .option("maxFilesPerTrigger", files_per_batch)
        .csv(clicks)
    )
    views = rows.where("behavior = 'pv'").select("user_id", "item_id", F.timestamp_seconds("ts").alias("event_at"))
    return views.withWatermark("event_at", f"{WATERMARK_SECONDS} seconds")


def count_traffic(views: DataFrame, grain: str) -> DataFrame:
    visitors = F.hll_sketch_estimate(F.hll_sketch_agg("user_id", LG_K))
    counted = views.groupBy(F.window("event_at", grain).alias("window")).agg(
        F.count("*").alias("page_views"), visitors.alias("unique_visitors")
    )
    return counted.select(
        F.lit(grain).alias("grain"),
        F.col("window.start").cast("long").alias("window_start"),
        "page_views",
        "unique_visitors",
    )


def count_items(views: DataFrame) -> DataFrame:
    window = F.window("event_at", f"{HOT_LENGTH} seconds", f"{HOT_SLIDE} seconds")
    counted = views.groupBy(window.alias("window"), "item_id").agg(F.count("*").alias("page_views"))
    return counted.select(F.col("window.end").cast("long").alias("window_end"), "item_id", "page_views")


def rank_items(closed: DataFrame) -> DataFrame:
    """The top items of windows that come whole, as they do in append mode."""
    order = Window.partitionBy("window_end").orderBy(F.desc("page_views"), "item_id")
    return closed.withColumn("rank", F.row_number().over(order)).where(F.col("rank") <= HOT_TOP)


def write_batch(finish: Callable[[DataFrame], DataFrame], target: Path, batch: DataFrame, number: int) -> None:
    finish(batch).write.parquet(f"{target}/batch={number}")


def start(counted: DataFrame, mode: str, finish: Callable[[DataFrame], DataFrame], target: Path) -> StreamingQuery:
    return (
        counted.writeStream.outputMode(mode)
        .option("checkpointLocation", str(target.with_name(f"{target.name}.checkpoint")))
        .foreachBatch(partial(write_batch, finish, target))
        .trigger(availableNow=True)
        .start()
    )


def count(clicks: str, files_per_batch: int, out: Path) -> None:
    """Write `hot_items/`, and a folder a grain in which a later batch updates an earlier one."""
    builder = SparkSession.builder.master(f"local[{CORES}]")
    for key, value in _SETTINGS.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    views = read_views(spark, clicks, files_per_batch)
    queries = [start(count_items(views), "append", rank_items, out / "hot_items")]
    for grain in GRAINS:
        target = out / "traffic" / grain.replace(" ", "_")
        queries.append(start(count_traffic(views, grain), "update", lambda batch: batch, target))
    for query in queries:
        query.awaitTermination()
    spark.stop()


if __name__ == "__main__":
    count(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]))
