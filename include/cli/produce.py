"""`tidemark produce`: input for the local stack, synthetic or from a real log."""

import json
import re
import time
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, Any

import typer

from include.cli.options import DEFAULT_JOB, HomeOption, JobOption, JsonOption, SpecOption
from include.cli.output import emit
from include.cli.progress import ProgressLine
from include.cli.target import Target, landing_target
from include.errors import UsageError
from include.producer.clicks import ClickShape
from include.producer.faults import FaultShares
from include.producer.landing import Landing, refuse_unlandable
from include.producer.manifest import iso_instant, manifest_path, recorded
from include.producer.pace import Clock, Progress
from include.producer.replay import Replay, TimeColumn, seconds_to_now
from include.producer.synthetic import Burst, ClickRun, Pace
from spark_jobs.contracts.durations import parse_duration
from spark_jobs.contracts.tables import NAME_PATTERN

ROWS_PER_FILE = 100_000
INTERRUPTED = 130

_ALWAYS = {"synthetic", "source_file", "name", "job", "spec", "home", "as_json"}
_CLICKS = {"items", "item_exponent", "visitors", "categories", "event_ids", "seed", "late", "late_by", "out_of_order"}
_CLICKS |= {"duplicate", "malformed", "future"}
_FITTING = {
    "--from": _ALWAYS | {"rate", "every", "rows_per_file", "shift_to_now", "time_column", "sep"},
    "--synthetic --rows": _ALWAYS | _CLICKS | {"rows", "files", "span", "start"},
    "--synthetic --rate": _ALWAYS | _CLICKS | {"rate", "duration", "every"},
}


def produce(
    context: typer.Context,
    source_file: Annotated[Path | None, typer.Option("--from", help="Land this log again, line by line.")] = None,
    synthetic: Annotated[bool, typer.Option("--synthetic", help="Make up clicks.")] = False,
    rate: Annotated[float | None, typer.Option(min=0.001, help="Rows a second; clicks are dated now.")] = None,
    duration: Annotated[str | None, typer.Option("--for", help="How long, with --rate; else until Ctrl-C.")] = None,
    every: Annotated[str, typer.Option(help="How often a file lands, with --rate.")] = "200 ms",
    rows: Annotated[int | None, typer.Option(min=1, help="So many clicks at once, over a span of time.")] = None,
    files: Annotated[int, typer.Option(min=1, help="In so many files.")] = 1,
    span: Annotated[str, typer.Option(help="The event time that --rows cover.")] = "1 day",
    start: Annotated[str | None, typer.Option(help="Where the span begins (ISO, UTC); else it ends now.")] = None,
    items: Annotated[int, typer.Option(min=1)] = ClickShape.items,
    item_exponent: Annotated[float, typer.Option(min=0, help="Of the Zipf law.")] = ClickShape.item_exponent,
    visitors: Annotated[int, typer.Option(min=1, max=2**32 - 1)] = ClickShape.visitors,
    categories: Annotated[int, typer.Option(min=1)] = ClickShape.categories,
    event_ids: Annotated[bool, typer.Option("--event-ids", help="Add a last column event_id.")] = False,
    seed: Annotated[int, typer.Option(min=0, help="The same seed gives the same clicks.")] = 1,
    late: Annotated[float, typer.Option(help="Share of rows moved back in time, 0 to 1.")] = 0.0,
    late_by: Annotated[str, typer.Option(help="By up to so much, and at least half of it.")] = "30 minutes",
    out_of_order: Annotated[float, typer.Option(help="Share of rows a few seconds out of order.")] = 0.0,
    duplicate: Annotated[float, typer.Option(help="Share of rows that repeat an earlier one.")] = 0.0,
    malformed: Annotated[float, typer.Option(help="Share of rows that cannot be read.")] = 0.0,
    future: Annotated[float, typer.Option(help="Share of rows dated years ahead.")] = 0.0,
    rows_per_file: Annotated[int | None, typer.Option(min=1, help="Lines a landed file, with --from.")] = None,
    shift_to_now: Annotated[bool, typer.Option("--shift-to-now", help="Move times; the newest is now.")] = False,
    time_column: Annotated[int | None, typer.Option(min=1, help="The column of epoch seconds, from 1.")] = None,
    sep: Annotated[str | None, typer.Option(help="What separates columns; else as in the spec.")] = None,
    name: Annotated[str | None, typer.Option(help="The manifest is produced/<name>.json in the home.")] = None,
    job: JobOption = DEFAULT_JOB,
    spec: SpecOption = None,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Land synthetic clicks with planted faults, or a real log again, with a manifest of what was landed."""
    refuse_unfit_options(context)
    target = landing_target(job, spec, home)
    began = datetime.now(UTC)
    run_name = run_name_of(name, "replay" if source_file else "clicks", began)
    path = manifest_path(target.home, run_name)
    run: ClickRun | Replay
    try:
        if source_file:
            shift = TimeColumn(time_column, separator_of(sep, target)) if time_column else None
            run = replay_run(target, source_file, rate, duration_of("--every", every), rows_per_file, shift)
        else:
            plan = burst_of(rows, files, span, start, began) if rows else pace_of(rate, duration, every)
            shape = ClickShape(items, item_exponent, visitors, categories)
            shares = FaultShares(late, out_of_order, duplicate, malformed, future, duration_of("--late-by", late_by))
            run = click_run(target, run_name, plan, shape, shares, seed, event_ids)
        about = {"name": run_name, "job": job, "directory": str(target.directory), "started_at": iso_instant(began)}
        manifest = carry_out(run, path, about)
    except OSError as error:
        raise UsageError(f"cannot produce into {target.directory}: {error}") from None
    emit(manifest, as_json, in_words(manifest, path))
    if not manifest["complete"]:
        raise typer.Exit(INTERRUPTED)


def refuse_unfit_options(context: typer.Context) -> None:
    """Raise if no mode is chosen, or for the first option typed that has no effect in the chosen one."""
    sources = {key: context.get_parameter_source(key) for key in context.params}
    typed = {key for key, source in sources.items() if source is not None and source.name == "COMMANDLINE"}
    if ("synthetic" in typed) == ("source_file" in typed):
        raise UsageError("choose one of --synthetic and --from FILE")
    if "synthetic" in typed and ("rows" in typed) == ("rate" in typed):
        raise UsageError("--synthetic goes with one of --rate N (clicks a second, from now on) and --rows N (at once)")
    if ("shift_to_now" in typed) != ("time_column" in typed):
        raise UsageError("--shift-to-now and --time-column K go together")
    mode = "--from" if "source_file" in typed else "--synthetic --rows" if "rows" in typed else "--synthetic --rate"
    spelling = {parameter.name: parameter.opts[0] for parameter in context.command.params}
    if unfit := sorted(spelling[key] for key in typed - _FITTING[mode]):
        raise UsageError(f"{unfit[0]} has no effect with {mode}; leave it out")


def run_name_of(name: str | None, kind: str, began: datetime) -> str:
    if name is None:
        return f"{kind}-{began:%Y%m%dt%H%M%S}{began.microsecond // 1000:03d}"
    if not re.fullmatch(NAME_PATTERN, name):
        raise UsageError(f"--name {name!r} is not a name; use lower-case letters, digits, - and _")
    return name


def duration_of(option: str, text: str) -> timedelta:
    try:
        return parse_duration(text)
    except (ValueError, OverflowError) as error:
        raise UsageError(f"{option}: {error}") from None


def separator_of(sep: str | None, target: Target) -> bytes:
    """As typed, where a tab may be written `\\t`, else the separator of the job's source."""
    return (target.source.options.sep if not sep else sep.replace("\\t", "\t")).encode()


def burst_of(rows: int, files: int, span: str, start: str | None, now: datetime) -> Burst:
    length = duration_of("--span", span)
    if start is None:
        return Burst(rows, now - length, length, files)
    try:
        at = datetime.fromisoformat(start)
    except ValueError:
        raise UsageError(f"--start {start!r} is not an instant; write it like 2025-11-18T09:00:00Z") from None
    return Burst(rows, at if at.tzinfo else at.replace(tzinfo=UTC), length, files)


def pace_of(rate: float | None, duration: str | None, every: str) -> Pace:
    return Pace(rate or 0.0, duration_of("--for", duration) if duration else None, duration_of("--every", every))


def click_run(
    target: Target,
    name: str,
    plan: Burst | Pace,
    shape: ClickShape,
    shares: FaultShares,
    seed: int,
    event_ids: bool,
) -> ClickRun:
    if target.source.format == "json":
        raise UsageError("synthetic clicks are lines of CSV, and the source reads JSON; choose another --job or --spec")
    with_header = target.source.options.header
    return ClickRun(Landing(target.directory), name, plan, shape, shares, seed, event_ids, with_header)


def replay_run(
    target: Target,
    file: Path,
    rate: float | None,
    every: timedelta,
    rows_per_file: int | None,
    time_column: TimeColumn | None,
) -> Replay:
    refuse_unlandable([file], target.directory)
    shift = (time_column, seconds_to_now(file, time_column, time.time())) if time_column else None
    rows = rows_per_file or (max(1, round(rate * every.total_seconds())) if rate else ROWS_PER_FILE)
    return Replay(file, Landing(target.directory), rows, rate, target.source.options.header, shift)


def carry_out(run: ClickRun | Replay, path: Path, about: dict[str, Any]) -> dict[str, Any]:
    """Run to the end or to Ctrl-C, and return the manifest of what has landed by then."""
    clock = Clock()
    record = recorded(path, lambda: about | {"seconds": round(clock.elapsed(), 3)} | run.as_json())
    with ProgressLine() as progress, suppress(KeyboardInterrupt), record:
        run.run(clock, lambda seen: progress.show(in_progress(seen)))
    return dict(json.loads(path.read_text(encoding="utf-8")))


def in_progress(seen: Progress) -> str:
    return f"landed {seen.rows:,} rows in {seen.files:,} files, {seen.seconds:.1f} s"


def in_words(manifest: dict[str, Any], path: Path) -> str:
    planted = [f"{count:,} {fault}" for fault, count in manifest.get("planted", {}).items() if count]
    return "\n".join(
        [
            f"{'' if manifest['complete'] else 'interrupted; '}landed {manifest['rows']:,} rows"
            f" in {manifest['files']:,} files in {manifest['directory']}",
            *([f"planted {', '.join(planted)}"] if planted else []),
            f"manifest {path}",
        ]
    )
