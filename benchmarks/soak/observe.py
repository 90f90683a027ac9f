"""What a soak shows: times from `batches`, and sizes and query times looked at while it runs."""

import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from types import TracebackType
from typing import Any, Self

from include.serving.warehouse import Warehouse
from spark_jobs.contracts.layout import Layout
from spark_jobs.contracts.tables import STREAM_TABLES
from spark_jobs.sinks.json_files import read_json

LOOK_SECONDS = 0.5
QUERIES = 3
QUERY = "SELECT grain, count(*), sum(page_views), max(unique_visitors) FROM traffic GROUP BY grain"

_TIMES = """
    WITH timed AS (
        SELECT id, epoch_us(committed_at) AS ended, epoch_us(committed_at) - epoch_us(started_at) AS took
        FROM batches WHERE read > 0),
    cycles AS (
        SELECT *, ended - lag(ended) OVER (ORDER BY id) AS cycle FROM timed)
    SELECT min(id) AS first, max(id) AS last, median(took) / 1000 AS batch_ms,
           quantile_cont(took, 0.95) / 1000 AS p95_ms, median(cycle) / 1000 AS cycle_ms
    FROM cycles GROUP BY id // {batches_a_slice} ORDER BY first"""


@dataclass
class Observer:
    """Looks at the tables from a thread of its own, once a slice of batches."""

    home: Path
    job: str
    batches_a_slice: int
    query_ms: dict[int, float] = field(default_factory=dict)  # by the number of the slice that had just ended
    sizes: list[dict[str, Any]] = field(default_factory=list)
    _ended: threading.Event = field(default_factory=threading.Event)

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._ended.set()
        self._thread.join()
        if kind is None:
            self._look(self._batch() // self.batches_a_slice)

    def _watch(self) -> None:
        current = 0
        while not self._ended.wait(LOOK_SECONDS):
            if (reached := self._batch() // self.batches_a_slice) > current:
                self._look(reached - 1)
                current = reached

    def _batch(self) -> int:
        progress = read_json(Layout(self.home, self.job).progress_file) or {}
        return int(progress.get("batch", 0))

    def _look(self, ended_slice: int) -> None:
        batch = self._batch()
        self.query_ms[ended_slice] = median(self._query() for _ in range(QUERIES)) * 1_000
        warehouse = Warehouse(self.home, self.job)
        self.sizes += [_size(warehouse, name, batch) for name in STREAM_TABLES]

    def _query(self) -> float:
        started = time.perf_counter()
        Warehouse(self.home, self.job).sql(QUERY)
        return time.perf_counter() - started


def _size(warehouse: Warehouse, name: str, batch: int) -> dict[str, Any]:
    """Files and bytes of the table's newest cut, and how many files its log has."""
    files = warehouse.table(name, warehouse.cut()).get_add_actions()
    sizes = files.column("size_bytes").to_pylist()
    log = sum(1 for _ in (warehouse.folder / name / "_delta_log").iterdir())
    return {"table": name, "batch": batch, "files": len(sizes), "bytes": sum(sizes), "log": log}


def summarise(home: Path, job: str, observer: Observer, batches_a_slice: int) -> dict[str, Any]:
    """Medians of every slice of batches with the query at its end; sizes after the first slice and at the end."""
    times = Warehouse(home, job).sql(_TIMES.format(batches_a_slice=batches_a_slice)).to_pylist()
    for part in times:
        part["query_ms"] = observer.query_ms.get(part["first"] // batches_a_slice)
    looked = sorted({size["batch"] for size in observer.sizes})
    shown = {looked[0], looked[len(looked) // 2], looked[-1]}
    sizes = [size for size in observer.sizes if size["batch"] in shown]
    return {"slices": times, "sizes": sorted(sizes, key=lambda size: (size["table"], size["batch"]))}
