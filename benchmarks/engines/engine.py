"""What the benchmark wants of an engine."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from benchmarks.answers import Answer
from benchmarks.data import Dataset


@dataclass(frozen=True)
class Run:
    """One measured run: what is read, and an empty folder for everything that is written."""

    dataset: Dataset
    files_per_batch: int
    folder: Path


class Engine(Protocol):
    """`prepare` and `answer` are not measured; `command` is, from its start to its end."""

    @property
    def name(self) -> str: ...

    @property
    def title(self) -> str:
        """What the report calls it, with what it needs to be read rightly."""

    def prepare(self) -> None:
        """Install what the engine needs, if it is not there; safe to repeat."""

    def command(self, run: Run) -> list[str]: ...

    def environment(self, run: Run) -> Mapping[str, str]: ...

    def answer(self, run: Run) -> Answer: ...
