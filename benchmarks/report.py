"""`docs/benchmarks.md` and its picture, from measurements and nothing else."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.compare import USUAL_SHARE, USUAL_SIGMAS, UTMOST_SIGMAS
from benchmarks.paced.pace import SETTLING_SECONDS
from benchmarks.plot import draw_times
from benchmarks.results import EngineResult, Measurements, ScaleResult
from benchmarks.windows import CORES, HEAP_GB, HOT_LENGTH, HOT_SLIDE, HOT_TOP, WATERMARK_SECONDS

OURS = "tidemark"
PAGE = Path(__file__).with_name("page.md")


def write_report(found: Measurements, target: Path) -> None:
    """The page, and beside it the picture of the same name."""
    picture = target.with_suffix(".svg")
    target.parent.mkdir(parents=True, exist_ok=True)
    picture.write_text(draw_times(found.scales), encoding="utf-8")
    target.write_text(render_page(found, picture.name), encoding="utf-8")


def render_page(found: Measurements, picture: str) -> str:
    return PAGE.read_text(encoding="utf-8").format(
        machine=table(["machine", ""], [[name, value] for name, value in found.machine.items()]),
        sections="\n\n".join(_sections(found, picture)),
        top=HOT_TOP,
        length=HOT_LENGTH // 60,
        slide=HOT_SLIDE // 60,
        watermark=WATERMARK_SECONDS,
        usual_sigmas=USUAL_SIGMAS,
        utmost_sigmas=UTMOST_SIGMAS,
        usual_share=f"{USUAL_SHARE:.1%}",
        cores=CORES,
        heap_gb=HEAP_GB,
        **{name: f"{value:,}" for name, value in found.settings.items()},
    )


def _sections(found: Measurements, picture: str) -> list[str]:
    sections = [render_scale(scale) for scale in found.scales]
    if sections:
        sections.insert(0, f"![Wall seconds of every engine]({picture})")
    if len(found.scales) > 1:
        sections.append(_growth(found.scales[0], found.scales[-1]))
    if found.paced:
        sections.append(render_pace(found.paced))
    return sections + [render_soak(name, soak) for name, soak in found.soaks.items()]


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """The first column is text, the others are numbers."""
    lines = [header, ["---", *["---:"] * (len(header) - 1)], *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def render_scale(scale: ScaleResult) -> str:
    ours = next((engine.typical.wall_seconds for engine in scale.engines if engine.name == OURS), None)
    header = ["engine", "wall s", "lowest–highest", "events/s", "CPU s", "peak memory", "wall ÷ Tidemark's"]
    rows = [_engine_row(engine, scale.events, ours) for engine in scale.engines]
    busy = max(cost.others_cpu_seconds / cost.wall_seconds for engine in scale.engines for cost in engine.costs)
    quiet = f"Everything else on the machine took at most {busy:.2f} cores meanwhile."
    return f"## {scale.events:,} events\n\n{table(header, rows)}\n\n{quiet}"


def _engine_row(engine: EngineResult, events: int, ours: float | None) -> list[str]:
    typical, walls = engine.typical, [cost.wall_seconds for cost in engine.costs]
    return [
        engine.title,
        f"{typical.wall_seconds:.1f}",
        f"{min(walls):.1f}–{max(walls):.1f}",
        f"{events / typical.wall_seconds:,.0f}",
        f"{typical.cpu_seconds:.1f}",
        f"{typical.peak_bytes / 2**20:,.0f} MiB",
        f"{typical.wall_seconds / ours:.2f}" if ours else "",
    ]


def _growth(small: ScaleResult, large: ScaleResult) -> str:
    before = {engine.name: engine.typical.wall_seconds / small.events for engine in small.engines}
    rows = [
        [engine.name, f"{before[engine.name] * 1e6:.2f}", f"{after * 1e6:.2f}", f"{after / before[engine.name]:.2f}"]
        for engine in large.engines
        if (after := engine.typical.wall_seconds / large.events) and engine.name in before
    ]
    header = ["µs an event", f"{small.events:,} events", f"{large.events:,} events", "ratio"]
    return f"## Time an event\n\n{table(header, rows)}"


def render_pace(paced: dict[str, Any]) -> str:
    latency = paced["latency"]
    shown = ("p50", "p95", "p99", "highest")
    told = (
        f"{latency['events']:,} events in {paced['seconds']} seconds, after {SETTLING_SECONDS} seconds of warming up.",
        "The time runs from an event's creation to the first finished read, by another process, of its minute's page",
        "views that includes it. An event waits up to 50 ms for its file, which counts; the trigger is 100 ms.",
        f"{paced['batches']:,} batches took {paced['batch_ms']:.0f} ms each in the median; the producer was at most",
        f"{latency['producer_behind']:.0f} ms behind its own pace.",
    )
    numbers = table(["", *shown], [["milliseconds", *(f"{latency[key]:.0f}" for key in shown)]])
    return "\n".join([f"## From an event to its number, at {paced['rate']:,} events/s\n", numbers, "", *told])


def render_soak(name: str, soak: dict[str, Any]) -> str:
    header = ["batches", "batch ms", "p95", "commit to commit ms", "query of `traffic` ms"]
    parts = [
        [f"{part['first']:,}–{part['last']:,}"]
        + ["" if part[key] is None else f"{part[key]:.0f}" for key in ("batch_ms", "p95_ms", "cycle_ms", "query_ms")]
        for part in soak["slices"]
    ]
    sizes = [
        [size["table"], f"{size['batch']:,}", f"{size['files']:,}", f"{size['bytes'] / 2**20:.1f}", f"{size['log']:,}"]
        for size in soak["sizes"]
    ]
    size_header = ["table", "after batch", "files", "MiB", "files in its log"]
    return f"## {name}\n\n{table(header, parts)}\n\n{table(size_header, sizes)}"
