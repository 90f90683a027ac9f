"""One paced run: the stream is started, the producer and the reader beside it, and their records are compared."""

import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyarrow.parquet as pq
from deltalake import DeltaTable

from benchmarks.compare import Mismatch
from benchmarks.measure import CommandFailed, tail
from benchmarks.paced.latency import Latency, latency_of
from benchmarks.paced.pace import SETTLING_SECONDS, Pace
from benchmarks.stream_job import JOB, StreamJob
from include.serving.warehouse import Warehouse
from spark_jobs.contracts.layout import Layout
from spark_jobs.contracts.tables import BATCHES

TRIGGER = "100 milliseconds"
FILES_PER_BATCH = 1_000
START_WITHIN_SECONDS = 120
STOP_WITHIN_SECONDS = 60


@dataclass(frozen=True)
class PacedResult:
    rate: int
    seconds: int
    latency: Latency
    batches: int
    batch_ms: float  # median, from the batch's start to its commit


def rehearse(folder: Path, rate: int, seconds: int, tell: Callable[[str], None]) -> PacedResult:
    """Run at `rate` events a second for `seconds`, after some seconds of settling that do not count."""
    shutil.rmtree(folder, ignore_errors=True)
    home = folder / "home"
    job = StreamJob(home, home / "landing" / "clicks", FILES_PER_BATCH, TRIGGER)
    job.write_spec()
    with _running(job.command(drain=False), folder / "stream.log") as stream:
        _wait_for_tables(Layout(home, JOB), stream, folder / "stream.log")
        pace = Pace(time.time() + 3, rate, seconds)
        tell(f"{rate:,} events a second for {SETTLING_SECONDS} + {seconds} seconds …")
        _produce_and_read(folder, job, pace)
    produced, seen = folder / "produced.parquet", folder / "seen.parquet"
    latency = latency_of(pace, pq.read_table(produced), pq.read_table(seen))
    return PacedResult(rate, seconds, latency, *_batch_times(home, pace))


def _produce_and_read(folder: Path, job: StreamJob, pace: Pace) -> None:
    pace.save(folder / "pace.json")
    produced, seen = folder / "produced.parquet", folder / "seen.parquet"
    module = [sys.executable, "-m"]
    reader = [*module, "benchmarks.paced.reader", str(job.home), str(produced), str(seen)]
    producer = [*module, "benchmarks.paced.producer", str(folder / "pace.json"), str(job.clicks), str(produced)]
    with _running(reader, folder / "reader.log") as reading, _running(producer, folder / "producer.log") as producing:
        for process, log in ((producing, "producer.log"), (reading, "reader.log")):
            if process.wait():
                raise CommandFailed(f"{log}:\n{tail(folder / log)}")


def _batch_times(home: Path, pace: Pace) -> tuple[int, float]:
    """How many batches there were, and the median of their milliseconds; Mismatch where rows are missing."""
    warehouse = Warehouse(home, JOB)
    cut = warehouse.cut()
    if cut.totals["on_time"] != pace.events:
        raise Mismatch(f"paced: {pace.events:,} events were landed, but the ledger says {cut.totals}")
    median = "median(epoch_us(committed_at) - epoch_us(started_at)) / 1000"
    found = warehouse.sql(f"SELECT count(*) AS batches, {median} AS batch_ms FROM batches WHERE read > 0", cut)
    row = found.to_pylist()[0]
    return row["batches"], row["batch_ms"]


def _wait_for_tables(layout: Layout, stream: "subprocess.Popen[bytes]", log: Path) -> None:
    deadline = time.monotonic() + START_WITHIN_SECONDS
    while not DeltaTable.is_deltatable(str(layout.current / BATCHES)):
        if stream.poll() is not None or time.monotonic() > deadline:
            raise CommandFailed(f"the stream did not start:\n{tail(log)}")
        time.sleep(0.1)


@contextmanager
def _running(command: list[str], log: Path) -> Iterator["subprocess.Popen[bytes]"]:
    """A process that is asked to end when the block does, and made to if it will not."""
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
    try:
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(STOP_WITHIN_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
