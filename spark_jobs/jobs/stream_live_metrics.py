"""The live stream: raw logs in; events, tallies, traffic and hot items out, every row accounted for.

Run as a program with a settings file: `python -m spark_jobs.jobs.stream_live_metrics settings.json`.
"""

import logging
import os
import re
import signal
import sys
import threading
import traceback
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from spark_jobs.contracts.layout import Layout
from spark_jobs.errors import SourceError, SpecError, TidemarkError
from spark_jobs.jobs.live_batches import LiveBatches, ignore
from spark_jobs.jobs.progress import Progress
from spark_jobs.jobs.read_ahead import ReadAhead
from spark_jobs.jobs.ticker import Ticker
from spark_jobs.session import open_session
from spark_jobs.settings import FilesSource, JobSpec, SocketSource
from spark_jobs.sinks.epochs import lock_job, take_epoch
from spark_jobs.sinks.json_files import write_json
from spark_jobs.sinks.processes import identity, start_ticks, stop_id
from spark_jobs.sinks.shape import keep_shape
from spark_jobs.sources.checkpoint import step_back
from spark_jobs.sources.files import local_path, open_files
from spark_jobs.sources.socket import open_socket
from spark_jobs.transforms.declare_measures import declare_measures
from spark_jobs.transforms.digest import Recipe
from spark_jobs.transforms.expressions import first_line
from spark_jobs.transforms.parse_events import build_parser, leave_spark

log = logging.getLogger(__name__)
POLL_SECONDS = 0.2
EMPTY = "__value STRING, __source STRING, __block BIGINT, __arrived TIMESTAMP"


class LiveMetricsSettings(BaseModel):
    """What the program is told: where, what, and whether to end when the input is used up."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    home: Path
    spec: JobSpec
    drain: bool = False

    @property
    def layout(self) -> Layout:
        return Layout(self.home, self.spec.job)

    def directory(self, source: FilesSource) -> Path:
        return self.home / Path(source.path).expanduser()


def run(
    spark: SparkSession,
    settings: LiveMetricsSettings,
    reached: Callable[[str], None] = ignore,
    stop: threading.Event | None = None,
    locked: bool = True,
) -> dict[str, int]:
    """Run until the input is used up (drain) or `stop` is set; returns the total ledger.

    `reached` hears of every point at which a crash must do no harm.
    """
    spec, layout = settings.spec, settings.layout
    if settings.drain and any(isinstance(source, SocketSource) for source in spec.source):
        raise SpecError("a socket has no end to drain to; run without --drain and stop with Ctrl-C")
    empty = spark.createDataFrame([], EMPTY)
    parser = build_parser(spec, empty)
    declared = declare_measures(spec.metrics.traffic, parser.parse([empty] * len(spec.source)))
    recipe = Recipe(spec, parser.faults, declared.dimensions, declared.measures)
    lock = lock_job(layout.lock_file) if locked else None
    try:
        epoch = take_epoch(layout)
        checkpoint = layout.checkpoint(epoch.checkpoint)
        keep_shape(layout.shape_file(epoch.checkpoint), spec)
        write_json(layout.settings_file, settings.model_dump(mode="json", by_alias=True, exclude_none=True))
        write_json(layout.process_file, identity(os.getpid(), spec.fingerprint) | {"epoch": epoch.number})
        progress = Progress(layout)
        batches = LiveBatches(layout, recipe, epoch, reached, progress)
        step_back(checkpoint, batches.cut.batch)
        progress.resume(batches.cut)
        if settings.drain:
            progress.files_to_drain = _count_files(settings, checkpoint)
        ahead = ReadAhead(batches, reached)
        progress.in_hand_since = lambda: ahead.in_hand_since
        stop = stop or threading.Event()
        ticker = Ticker(layout, progress.beat, {"stop": lambda request: _ask(stop, request)})
        ticker.start()
        try:
            events = declared.select(parser.parse([_open(spark, source, settings) for source in spec.source]))
            query = _start(leave_spark(events, spec), settings, checkpoint, ahead)
            _wait(query, ahead, progress, stop)
            if settings.drain and not stop.is_set():
                batches.finish_drain()
            progress.finish(batches.cut.totals)
            return batches.cut.totals
        finally:
            ahead.close()
            batches.close()
            ticker.close()
    finally:
        if lock is not None:
            lock.close()


def _open(spark: SparkSession, source: FilesSource | SocketSource, settings: LiveMetricsSettings) -> DataFrame:
    if isinstance(source, SocketSource):
        return open_socket(spark, source)
    return open_files(spark, source, settings.directory(source))


def _start(
    events: DataFrame, settings: LiveMetricsSettings, checkpoint: Path, process: Callable[[DataFrame, int], None]
) -> StreamingQuery:
    writer = (
        events.writeStream.queryName(settings.spec.job)
        .option("checkpointLocation", str(checkpoint))
        .foreachBatch(process)
    )
    seconds = settings.spec.time.trigger.total_seconds()
    every = {"availableNow": True} if settings.drain else {"processingTime": f"{seconds * 1000:.0f} milliseconds"}
    try:
        return writer.trigger(**every).start()
    except PySparkException as error:
        raise TidemarkError(first_line(error)) from None


def _ask(stop: threading.Event, request: dict[str, Any]) -> dict[str, str]:
    if request["id"] != stop_id(os.getpid(), start_ticks(os.getpid())):
        raise TidemarkError("the request is for another process")  # one that died before it could answer
    stop.set()
    return {"answer": "stops after the batch in hand"}


def _wait(query: StreamingQuery, ahead: ReadAhead, progress: Progress, stop: threading.Event) -> None:
    """Until the query ends by itself or `stop` is set; the batch in hand is finished first."""
    try:
        while not query.awaitTermination(POLL_SECONDS):  # type: ignore[arg-type]  # parts of a second are fine
            progress.answered()
            if ahead.has_failed or stop.is_set():
                ahead.stop()
                query.stop()
                break
    except PySparkException as error:
        ahead.finish()
        raise _cause(error) from error
    ahead.finish()


def _cause(error: PySparkException) -> Exception:
    """The fault of ours that ended the query, or Spark's in one line."""
    text = str(error)
    kinds: list[type[TidemarkError]] = [TidemarkError, *TidemarkError.__subclasses__()]
    for kind in kinds:
        marker = f"spark_jobs.errors.{kind.__name__}: "
        if marker in text:
            return kind(text.split(marker, 1)[1].splitlines()[0])
    if vanished := re.search(r"FILE_NOT_EXIST\].*?(file:\S+?)\.? ", text):
        return SourceError(
            f"{local_path(vanished[1])} vanished while it was read; put it back and start again "
            "(runbook: a file changed or vanished)"
        )
    in_spark = re.findall(r"^Caused by: (.+)", text, re.MULTILINE)
    in_python = re.findall(r"Traceback \(most recent call last\):\n(?:[ \t].*\n)+(\S.*)", text)
    told = [*in_spark[:1], *in_spark[1:][-1:]] or in_python[-1:] or [first_line(error)[:2000]]
    return TidemarkError("; ".join(told))


def _count_files(settings: LiveMetricsSettings, checkpoint: Path) -> int:
    """Files that a drain has before it, for the bar."""
    there = sum(
        1
        for source in settings.spec.source
        if isinstance(source, FilesSource) and (directory := settings.directory(source)).is_dir()
        for file in directory.iterdir()
        if not file.name.startswith((".", "_"))
    )
    logs = (file for file in checkpoint.glob("sources/*/*") if file.name.isdigit())  # beside them lie checksums
    logged = sum(1 for file in logs for _ in file.open(encoding="utf-8"))
    return max(there - logged, 1)


def _clock() -> str:
    return datetime.now(UTC).isoformat()


def main(arguments: list[str]) -> int:
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(name)s %(message)s")
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    try:
        settings = LiveMetricsSettings.model_validate_json(Path(arguments[0]).read_text(encoding="utf-8"))
    except (ValidationError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    code, reason = 0, "stopped as asked"
    try:
        spark = open_session(settings.spec, settings.home)
        run(spark, settings, stop=stop)
        if not stop.is_set():
            reason = "the input is used up"
    except Exception as error:
        told = isinstance(error, TidemarkError | OSError)
        code, reason = 1, str(error) if told else f"{type(error).__name__}: {error}"
        print(f"error: {reason}" if told else traceback.format_exc(), file=sys.stderr)
    ended = {"code": code, "reason": reason, "finished": code == 0 and not stop.is_set(), "at": _clock()}
    write_json(settings.layout.ended_file, identity(os.getpid(), settings.spec.fingerprint) | ended)
    return code


if __name__ == "__main__":
    code = main(sys.argv[1:])
    sys.stderr.flush()
    os._exit(code)  # the JVM's threads would hold the process for seconds
