"""Every engine on the same data set, in turn and again, each answer compared before its cost counts."""

import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.answers import Answer
from benchmarks.compare import check_equal
from benchmarks.data import Dataset
from benchmarks.engines.duckdb import DuckDb
from benchmarks.engines.duckdb_job import count
from benchmarks.engines.engine import Engine, Run
from benchmarks.engines.flink import Flink
from benchmarks.engines.spark import SparkWindows
from benchmarks.engines.tidemark import Tidemark
from benchmarks.measure import Cost, measure


def all_engines(work: Path) -> dict[str, Engine]:
    """By name, in the order in which they run and are reported."""
    engines: list[Engine] = [Tidemark(), DuckDb(), Flink(work), SparkWindows()]
    return {engine.name: engine for engine in engines}


@dataclass(frozen=True)
class Contest:
    """One data set, some engines, `repeats` rounds in each of which every engine runs once."""

    dataset: Dataset
    engines: Sequence[Engine]
    files_per_batch: int
    repeats: int
    folder: Path

    def hold(self, tell: Callable[[str], None]) -> dict[str, list[Cost]]:
        """The costs of every engine, by its name; Mismatch where an answer differs."""
        self.dataset.warm()
        exact = self._exact_answer()
        costs: dict[str, list[Cost]] = {engine.name: [] for engine in self.engines}
        for number in range(1, self.repeats + 1):
            for engine in self.engines:
                tell(f"{self.dataset.events:,} events, run {number} of {self.repeats}: {engine.name} …")
                costs[engine.name].append(self._run(engine, exact))
        return costs

    def _exact_answer(self) -> Answer:
        run = self._fresh_run("exact")
        count(self.dataset.single, run.folder)
        return DuckDb().answer(run)

    def _run(self, engine: Engine, exact: Answer) -> Cost:
        run = self._fresh_run(engine.name)
        cost = measure(engine.command(run), run.folder, engine.environment(run))
        check_equal(engine.name, engine.answer(run), exact, self.dataset.closed_until)
        shutil.rmtree(run.folder)
        return cost

    def _fresh_run(self, name: str) -> Run:
        folder = self.folder / name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        return Run(self.dataset, self.files_per_batch, folder)
