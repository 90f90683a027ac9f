"""`make bench`: equal answers first, then times, then `docs/benchmarks.md`.

A page is written by default only after a full run, so that its numbers always belong together.
"""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from benchmarks.compare import Mismatch
from benchmarks.contest import Contest, all_engines
from benchmarks.data import make_dataset
from benchmarks.engines.engine import Engine
from benchmarks.machine import describe_machine
from benchmarks.measure import CommandFailed
from benchmarks.paced.rehearsal import rehearse
from benchmarks.report import render_pace, render_scale, write_report
from benchmarks.results import EngineResult, Measurements, ScaleResult
from include.settings import PROJECT, resolve_home

PAGE = PROJECT / "docs" / "benchmarks.md"
FULL_EVENTS, FULL_SCALES, FULL_REPEATS = 5_000_000, (1, 4), 2
SLOWEST = "spark"
"""Runs at the first scale only, unless asked for by name: its sliding windows take a quarter of an hour at the next."""
FULL_RATE, FULL_SECONDS = 5_000, 120


def main(arguments: Sequence[str] | None = None) -> int:
    options = _options(arguments)
    kept = options.work / "measurements.json"
    found = Measurements.load(kept)
    try:
        (measure_pace if options.paced else measure_throughput)(options, found)
    except (Mismatch, CommandFailed) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    is_full = _is_full(options)
    if is_full:
        found.save(kept)
    target = options.out or (PAGE if is_full else None)
    if target and found.scales:
        write_report(found, target)
        tell(f"written: {target}")
    return 0


def measure_throughput(options: argparse.Namespace, found: Measurements) -> None:
    """New results for every scale; times are printed when all answers of a scale were found equal."""
    engines = _chosen(all_engines(options.work), options.only)
    for engine in engines:
        engine.prepare()
    found.machine = describe_machine()
    found.settings = {name: getattr(options, name) for name in ("rows_per_file", "files_per_batch", "repeats")}
    found.scales = []
    for scale in options.scales:
        dataset = make_dataset(options.work, options.events * scale, options.rows_per_file)
        able = [engine for engine in engines if engine.name != SLOWEST or scale == options.scales[0] or options.only]
        contest = Contest(dataset, able, options.files_per_batch, options.repeats, options.work / "runs")
        costs = contest.hold(tell)
        results = [EngineResult(engine.name, engine.title, costs[engine.name]) for engine in able]
        found.scales.append(ScaleResult(dataset.events, results))
        tell(f"all answers equal\n\n{render_scale(found.scales[-1])}\n")


def measure_pace(options: argparse.Namespace, found: Measurements) -> None:
    found.paced = asdict(rehearse(options.work / "paced", options.rate, options.seconds, tell))
    tell(render_pace(found.paced))


def tell(text: str) -> None:
    print(text, flush=True)


def _is_full(options: argparse.Namespace) -> bool:
    """Whether the run was as large as the page promises."""
    if options.paced:
        return bool(options.rate >= FULL_RATE and options.seconds >= FULL_SECONDS)
    sizes = options.events >= FULL_EVENTS and tuple(options.scales) == FULL_SCALES
    return sizes and options.repeats >= FULL_REPEATS and not options.only


def _chosen(engines: dict[str, Engine], only: Sequence[str]) -> list[Engine]:
    if unknown := set(only) - set(engines):
        raise SystemExit(f"no engine {', '.join(sorted(unknown))}; there are {', '.join(engines)}")
    return [engine for name, engine in engines.items() if not only or name in only]


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.run", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--events", type=int, default=FULL_EVENTS, help="events at scale 1")
    parser.add_argument("--scales", type=_numbers, default=FULL_SCALES, help="multiples of --events, such as 1,4")
    parser.add_argument("--repeats", type=int, default=FULL_REPEATS, help="rounds in which every engine runs once")
    parser.add_argument("--only", type=_names, default=(), help="engines to run: tidemark,duckdb,flink,spark")
    parser.add_argument("--rows-per-file", type=int, default=500_000)
    parser.add_argument("--files-per-batch", type=int, default=2, help="for Tidemark and Spark")
    parser.add_argument("--paced", action="store_true", help="measure the latency of a steady stream instead")
    parser.add_argument("--rate", type=int, default=FULL_RATE, help="events a second, with --paced")
    parser.add_argument("--seconds", type=int, default=FULL_SECONDS, help="how long, with --paced")
    parser.add_argument("--out", type=Path, help="where to write the page also after a run that is not full")
    parser.add_argument("--work", type=Path, default=resolve_home() / "bench", help="data, environments, results")
    options = parser.parse_args(arguments)
    options.work = options.work.resolve()
    return options


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(","))


def _names(text: str) -> tuple[str, ...]:
    return tuple(text.split(","))


if __name__ == "__main__":
    sys.exit(main())
