"""What Spark wrote of its batches beside the tables, and how it is brought in line with them at a start."""

import json
from collections.abc import Iterator
from pathlib import Path


def entries(log: Path) -> Iterator[tuple[int, Path]]:
    """The entries of one of Spark's logs, with their numbers; one that sums up all before is `<number>.compact`."""
    for path in log.glob("[0-9]*"):
        number = path.name.removesuffix(".compact")
        if number.isdigit():
            yield int(number), path


def drop_entries(log: Path, after: int) -> None:
    for number, entry in entries(log):
        if number > after:
            entry.unlink()
            entry.with_name(f".{entry.name}.crc").unlink(missing_ok=True)


def positions(checkpoint: Path, batch: int) -> dict[int, int]:
    """The last entry of each file source's log that belongs to the batch or one before it."""
    offsets = checkpoint / "offsets" / str(batch)
    if not offsets.exists():
        return {}
    _, _, *texts = offsets.read_text(encoding="utf-8").splitlines()  # version, settings
    found = {source: json.loads(text) for source, text in enumerate(texts) if text != "-"}
    return {source: offset["logOffset"] for source, offset in found.items() if isinstance(offset, dict)}


def step_back(checkpoint: Path, batch: int) -> None:
    """Let Spark go on after `batch`, the last one that is whole in the tables, however far it was ahead of them.

    The batch after it keeps its plan: some of its rows may be in tables already. Plans of later ones, of which nothing
    was written, are taken back. So are files that Spark noted but did not plan a batch with: after a death in between
    it would add the next files to them, and the batch would hold more than `files_per_batch`.
    """
    drop_entries(checkpoint / "commits", batch)
    drop_entries(checkpoint / "offsets", batch + 1)
    planned = max((number for number, _ in entries(checkpoint / "offsets")), default=-1)
    last = positions(checkpoint, planned)
    for log in (checkpoint / "sources").glob("[0-9]*"):
        drop_entries(log, last.get(int(log.name), -1))
