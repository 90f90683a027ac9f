"""`python -m benchmarks.soak`: small batches in a row, upkeep on; batch time, sizes and query time as they go.

Results of a full soak are kept beside those of `make bench` and stand on the same page.
"""

import argparse
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.machine import describe_machine
from benchmarks.measure import CommandFailed, measure
from benchmarks.report import render_soak, write_report
from benchmarks.results import Measurements
from benchmarks.run import PAGE, tell
from benchmarks.soak.age_tables import age_tables
from benchmarks.soak.clicks import land_small_files
from benchmarks.soak.observe import Observer, summarise
from benchmarks.stream_job import JOB, StreamJob
from include.settings import resolve_home
from spark_jobs.contracts.layout import Layout

FULL_BATCHES = 5_000


def main(arguments: Sequence[str] | None = None) -> int:
    options = _options(arguments)
    try:
        soak = run_soak(options.work / "soak", options.batches, options.rows, options.commits, options.slice)
    except CommandFailed as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    name = f"{options.batches:,} small batches in a row"
    name += f", on tables that hold {options.commits:,} commits already" if options.commits else ""
    tell(render_soak(name, soak))
    if options.batches >= FULL_BATCHES:
        _keep(options.work / "measurements.json", name, soak)
    return 0


def run_soak(folder: Path, batches: int, rows: int, commits: int, batches_a_slice: int) -> dict[str, Any]:
    """A drain of `batches` files of `rows` events, one a batch; first, the tables get `commits` empty commits each."""
    shutil.rmtree(folder, ignore_errors=True)
    home = folder / "home"
    job = StreamJob(home, home / "landing" / "clicks", files_per_batch=1)
    job.write_spec()
    files = land_small_files(job.clicks, batches, rows)
    if commits:
        tell(f"{commits:,} empty commits on every table …")
        next(files)  # a batch by itself makes the tables
        measure(job.command(drain=True), folder / "first")
        age_tables(Layout(home, JOB).current, commits)
    for _ in files:
        pass
    tell(f"{batches:,} batches …")
    with Observer(home, JOB, batches_a_slice) as observer:
        cost = measure(job.command(drain=True), folder / "drain")
    return summarise(home, JOB, observer, batches_a_slice) | {"wall_seconds": cost.wall_seconds}


def _keep(kept: Path, name: str, soak: dict[str, Any]) -> None:
    found = Measurements.load(kept)
    found.machine = found.machine or describe_machine()
    found.soaks[name] = soak
    found.save(kept)
    if found.scales:
        write_report(found, PAGE)
        tell(f"written: {PAGE}")


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.soak", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--batches", type=int, default=FULL_BATCHES)
    parser.add_argument("--rows", type=int, default=200, help="events a batch")
    parser.add_argument("--commits", type=int, default=0, help="empty commits on every table before, such as 86400")
    parser.add_argument("--slice", type=int, default=500, help="batches whose times are summed up together")
    parser.add_argument("--work", type=Path, default=resolve_home() / "bench")
    options = parser.parse_args(arguments)
    options.work = options.work.resolve()
    return options


if __name__ == "__main__":
    sys.exit(main())
