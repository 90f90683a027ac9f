"""A bar for each engine and scale, as plain SVG: a static picture that needs no browser to be made."""

from collections.abc import Iterator, Sequence
from html import escape

from benchmarks.results import EngineResult, ScaleResult

WIDTH, BAR, GAP, LEFT, RIGHT, TOP = 760, 20, 8, 90, 220, 34
COLOURS = {"tidemark": "#0b7285", "duckdb": "#adb5bd", "flink": "#e8590c", "spark": "#f59f00"}


def draw_times(scales: Sequence[ScaleResult]) -> str:
    """Median wall seconds; each scale has its own axis, so that bars of one scale compare."""
    shapes, y = [], 12
    for scale in scales:
        shapes += [_text(12, y + 14, f"{scale.events:,} events, wall seconds", weight="bold")]
        y += TOP
        longest = max(engine.typical.wall_seconds for engine in scale.engines)
        for engine in scale.engines:
            shapes += _bar(engine, scale.events, y, longest)
            y += BAR + GAP
        y += GAP
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {y}" font-family="sans-serif" font-size="13">'
    return "\n".join([head, f'<rect width="{WIDTH}" height="{y}" fill="#ffffff"/>', *shapes, "</svg>", ""])


def _bar(engine: EngineResult, events: int, y: int, longest: float) -> Iterator[str]:
    seconds = engine.typical.wall_seconds
    width = max(2, round((WIDTH - LEFT - RIGHT) * seconds / longest))
    yield _text(LEFT - 8, y + 15, engine.name, anchor="end")
    colour = COLOURS.get(engine.name, "#495057")
    yield f'<rect x="{LEFT}" y="{y}" width="{width}" height="{BAR}" fill="{colour}"/>'
    yield _text(LEFT + width + 6, y + 15, f"{seconds:.1f} s, {events / seconds:,.0f} events/s")


def _text(x: int, y: int, text: str, anchor: str = "start", weight: str = "normal") -> str:
    return f'<text x="{x}" y="{y}" text-anchor="{anchor}" font-weight="{weight}" fill="#212529">{escape(text)}</text>'
