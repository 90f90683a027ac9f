"""DuckDB, one batch pass: also the exact answer that the others are compared with."""

import sys
from collections.abc import Mapping

from benchmarks.answers import Answer, answer_of
from benchmarks.engines.engine import Run


class DuckDb:
    name = "duckdb"
    title = "DuckDB, one batch pass, nothing stored (the limit)"

    def prepare(self) -> None:
        """Comes with the project."""

    def command(self, run: Run) -> list[str]:
        return [sys.executable, "-m", "benchmarks.engines.duckdb_job", str(run.dataset.single), str(run.folder)]

    def environment(self, run: Run) -> Mapping[str, str]:
        return {}

    def answer(self, run: Run) -> Answer:
        return answer_of(
            f"SELECT *, 0 AS relative_error FROM '{run.folder}/traffic.parquet'",
            f"FROM '{run.folder}/hot_items.parquet'",
        )
