"""What a job's tallies mean, kept beside its checkpoint: Spark itself would accept a changed window silently."""

from pathlib import Path
from typing import Any

from spark_jobs.errors import SpecError
from spark_jobs.settings import JobSpec
from spark_jobs.sinks.json_files import read_json, write_json


def refusal(path: Path, spec: JobSpec) -> str | None:
    """Why the spec cannot go on with what is there, by the name of the field; None where it can."""
    shape = _shape(spec)
    for field, value in (read_json(path) or {}).items():
        if field in shape and shape[field] != value:
            return (
                f"{field} was {value!r} when job {spec.job} began and is {shape[field]!r} now; old numbers would not "
                "fit: change it back, or run the new spec under another job name"
            )
    return None


def keep_shape(path: Path, spec: JobSpec) -> None:
    """Refuse to go on with tallies that mean something else; note what is new."""
    if refused := refusal(path, spec):
        raise SpecError(refused)
    write_json(path, (read_json(path) or {}) | _shape(spec))


def _shape(spec: JobSpec) -> dict[str, Any]:
    traffic, hot = spec.metrics.traffic, spec.metrics.hot_items
    return {
        "time.by": spec.time.by,
        "time.zone": spec.time.zone,
        "metrics.traffic.grains": list(traffic.grains),
        "metrics.traffic.by": traffic.by,
        "metrics.hot_items.length": str(hot.length),
        "metrics.hot_items.slide": str(hot.slide),
        "metrics.hot_items.action": hot.action,
        "source (number, kinds and places)": [s.place for s in spec.source],
    } | {
        f"metrics.traffic.measures.{name}": measure.model_dump(exclude_none=True)
        for name, measure in traffic.all_measures.items()
    }
