"""One way to make a Spark session: local jars, quiet, tuned for small batches."""

import os
import sys
from pathlib import Path

from pyspark.sql import SparkSession

from spark_jobs.settings import JobSpec

PROJECT = Path(__file__).resolve().parents[1]
LOGGING = Path(__file__).with_name("log4j2.properties")
CLASSES = PROJECT / "jars" / "classes.jsa"
"""Made by set-up; a JVM that cannot use it starts without."""

COMPILE_WHAT_IS_HOT = {
    "Tier3InvocationThreshold": 1_000,
    "Tier3MinInvocationThreshold": 500,
    "Tier3CompileThreshold": 4_000,
    "Tier4InvocationThreshold": 20_000,
    "Tier4MinInvocationThreshold": 3_000,
    "Tier4CompileThreshold": 40_000,
}
"""Four to five times Java's own: Spark's planner is large, and compiling all of it takes a core for many seconds."""

JAVA_OPTIONS = " ".join(
    [
        "-XX:+UseParallelGC",
        "-XX:-UsePerfData",
        *(f"-XX:{name}={value}" for name, value in COMPILE_WHAT_IS_HOT.items()),
        f"-Dlog4j2.configurationFile={LOGGING.as_uri()}",
    ]
)
BLOCK_BYTES = 64 << 20

_CONF = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.ansi.enabled": "false",  # a cast that fails is NULL and its row malformed; it does not end the stream
    "spark.sql.adaptive.enabled": "false",
    # Equal values put one block of one file into a partition: a row's ordinal there is its place in the file.
    "spark.sql.files.maxPartitionBytes": str(BLOCK_BYTES),
    "spark.sql.files.openCostInBytes": str(BLOCK_BYTES),
    "spark.sql.execution.arrow.maxRecordsPerBatch": "65536",
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
    # The log of seen files is rewritten whole at every compaction: seldom is cheap, and flat over months.
    "spark.sql.streaming.fileSource.log.compactInterval": "200",
    "spark.sql.streaming.metricsEnabled": "false",
    "spark.sql.streaming.numRecentProgressUpdates": "10",
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    # Hadoop's own starts a process to set the permissions of each file it creates: 10 ms for every entry of a log.
    "spark.hadoop.fs.file.impl": "com.globalmentor.apache.hadoop.fs.BareLocalFileSystem",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
}


def _java_options() -> str:
    known = CLASSES.exists() and " " not in str(CLASSES)  # Spark splits options at blanks
    return f"{JAVA_OPTIONS} -Xshare:auto -XX:SharedArchiveFile={CLASSES}" if known else JAVA_OPTIONS


def open_session(spec: JobSpec, home: Path) -> SparkSession:
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    jars = sorted(str(jar) for jar in (PROJECT / "jars" / "spark").glob("*.jar"))
    builder = SparkSession.builder.appName(f"tidemark {spec.job}").master(spec.resources.master)
    settings = _CONF | {
        "spark.driver.memory": spec.resources.driver_memory,
        "spark.sql.shuffle.partitions": str(spec.resources.shuffle_partitions),
        "spark.sql.streaming.minBatchesToRetain": str(spec.savepoints.retained_batches),
        "spark.driver.extraJavaOptions": _java_options(),
        "spark.driver.extraClassPath": ":".join(jars),  # the file system is needed before `spark.jars` are loaded
        "spark.sql.warehouse.dir": str(home / "spark"),
        "spark.local.dir": str(home / "spark"),
    }
    if not spec.resources.master.startswith("local"):
        settings["spark.jars"] = ",".join(jars)
    for key, value in (settings | spec.resources.conf).items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark
