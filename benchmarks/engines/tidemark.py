"""This project: the stream drained as `tidemark run --drain` does it, every row stored and accounted for."""

from collections.abc import Mapping

from benchmarks.answers import Answer, answer_of
from benchmarks.compare import Mismatch
from benchmarks.engines.engine import Run
from benchmarks.stream_job import JOB, StreamJob
from include.serving.warehouse import Warehouse


class Tidemark:
    name = "tidemark"
    title = "Tidemark, raw rows stored, ledger kept"

    def prepare(self) -> None:
        """Is the project."""

    def command(self, run: Run) -> list[str]:
        job = _job(run)
        job.write_spec()
        return job.command(drain=True)

    def environment(self, run: Run) -> Mapping[str, str]:
        return {}

    def answer(self, run: Run) -> Answer:
        warehouse = Warehouse(_job(run).home, JOB)
        cut = warehouse.cut()
        if cut.totals["on_time"] != run.dataset.events:
            raise Mismatch(f"tidemark: {run.dataset.events:,} events in order, but the ledger says {cut.totals}")
        traffic = warehouse.sql(
            """SELECT grain, epoch(window_start)::BIGINT AS window_start, page_views, unique_visitors,
                      unique_visitors_error AS relative_error FROM traffic""",
            cut,
        )
        hot_items = warehouse.sql(
            """SELECT epoch(window_end)::BIGINT AS window_end, rank, item_id::BIGINT AS item_id, page_views
               FROM hot_items""",
            cut,
        )
        return answer_of("FROM traffic", "FROM hot_items", traffic=traffic, hot_items=hot_items)


def _job(run: Run) -> StreamJob:
    return StreamJob(run.folder / "home", run.dataset.parts, run.files_per_batch)
