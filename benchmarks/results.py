"""Measurements as they are kept between runs: throughput, paced and soak runs are taken at different times."""

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median
from typing import Any, Self

from benchmarks.measure import Cost


@dataclass(frozen=True)
class EngineResult:
    """The costs of an engine's runs on one data set."""

    name: str
    title: str
    costs: list[Cost]

    @property
    def typical(self) -> Cost:
        """The median of each cost by itself."""
        return Cost(
            median(cost.wall_seconds for cost in self.costs),
            median(cost.cpu_seconds for cost in self.costs),
            round(median(cost.peak_bytes for cost in self.costs)),
            median(cost.others_cpu_seconds for cost in self.costs),
        )


@dataclass(frozen=True)
class ScaleResult:
    """Every engine on a data set of so many events."""

    events: int
    engines: list[EngineResult]


@dataclass
class Measurements:
    """What full runs have found so far; each part replaces its predecessor whole."""

    machine: dict[str, str] = field(default_factory=dict)
    settings: dict[str, int] = field(default_factory=dict)
    scales: list[ScaleResult] = field(default_factory=list)
    paced: dict[str, Any] | None = None
    soaks: dict[str, dict[str, Any]] = field(default_factory=dict)  # by the name of the soak

    @classmethod
    def load(cls, path: Path) -> Self:
        """What is kept at `path`; nothing where there is no file."""
        if not path.exists():
            return cls()
        found = json.loads(path.read_text(encoding="utf-8"))
        found["scales"] = [_scale(scale) for scale in found["scales"]]
        return cls(**found)

    def save(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = path.with_suffix(".draft")
        draft.write_text(json.dumps(asdict(self), indent=1), encoding="utf-8")
        draft.replace(path)


def _scale(found: dict[str, Any]) -> ScaleResult:
    engines = [
        EngineResult(engine["name"], engine["title"], [Cost(**cost) for cost in engine["costs"]])
        for engine in found["engines"]
    ]
    return ScaleResult(found["events"], engines)
