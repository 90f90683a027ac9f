"""What a batch decides by, written before anything else of it: a replayed batch must decide the same."""

from dataclasses import asdict, dataclass
from pathlib import Path

from spark_jobs.errors import SourceError, SpecError
from spark_jobs.sinks.json_files import read_json, write_json


@dataclass(frozen=True)
class BatchRecord:
    """Watermark before the batch and its wall clock (microseconds), the rules it used, the sizes of its files."""

    batch: int
    watermark: int | None
    now: int
    rules: str
    files: dict[str, int]


class BatchRecords:
    """The records beside Spark's own checkpoint; as many are kept as Spark keeps offsets."""

    def __init__(self, folder: Path, keep: int) -> None:
        self._folder = folder
        self._keep = keep
        self._forgotten: list[str] = []

    def settle(self, proposed: BatchRecord) -> BatchRecord:
        """The record of this batch: the one on disk if the batch ran before, else `proposed`, now on disk."""
        path = self._folder / f"{proposed.batch}.json"
        found = read_json(path)
        if found is None:
            write_json(path, asdict(proposed), durable=True)
            self._forget(proposed.batch - self._keep)
            return proposed
        record = BatchRecord(**found)
        if record.rules != proposed.rules:
            raise SpecError(
                f"batch {record.batch} began with other sources, rules or times than the spec has now; run the old "
                "spec until the batch is done, then change it (runbook: a batch began with another spec)"
            )
        changed = {name for name, size in record.files.items() if proposed.files.get(name, size) != size}
        if changed or record.files.keys() != proposed.files.keys():
            name = min(changed or record.files.keys() ^ proposed.files.keys())
            raise SourceError(
                f"{name} is not as it was when batch {record.batch} began; put the old content back "
                "(runbook: a file changed or vanished)"
            )
        return record

    def _forget(self, batch: int) -> None:
        path = self._folder / f"{batch}.json"
        if (old := read_json(path)) is not None:
            self._forgotten += old["files"]
            path.unlink()

    def forgotten(self) -> list[str]:
        """Files of batches that can no longer be replayed, each named once."""
        names, self._forgotten = self._forgotten, []
        return names
