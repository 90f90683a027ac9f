"""Spark's own windows: what one would write with Structured Streaming alone."""

import sys
from collections.abc import Mapping

from benchmarks.answers import Answer, answer_of
from benchmarks.engines.engine import Run

RELATIVE_ERROR = 1.04 / 2 ** (14 / 2)
"""One sigma of a merged sketch with lgK 14."""


class SparkWindows:
    name = "spark"
    title = "Spark's own `window()`, no raw rows stored"

    def prepare(self) -> None:
        """Comes with the project."""

    def command(self, run: Run) -> list[str]:
        clicks, files = str(run.dataset.parts), str(run.files_per_batch)
        return [sys.executable, "-m", "benchmarks.engines.spark_job", clicks, files, str(run.folder)]

    def environment(self, run: Run) -> Mapping[str, str]:
        return {}

    def answer(self, run: Run) -> Answer:
        return answer_of(
            f"""SELECT *, {RELATIVE_ERROR} AS relative_error
                FROM read_parquet('{run.folder}/traffic/[0-9]*_*[a-z]/batch=*/*.parquet', hive_partitioning = true)
                QUALIFY row_number() OVER (PARTITION BY grain, window_start ORDER BY batch DESC) = 1""",
            f"FROM read_parquet('{run.folder}/hot_items/batch=*/*.parquet', hive_partitioning = true)",
        )
