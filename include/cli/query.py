"""`tidemark query`: one SELECT over the tables and views of a job."""

import csv
import io
import json
from datetime import date, datetime
from enum import StrEnum
from typing import Annotated, Any

import pyarrow as pa
import typer

from include.cli.options import DEFAULT_JOB, HomeOption, JobOption, JsonOption
from include.serving.warehouse import Warehouse
from include.settings import resolve_home

WIDEST = 60


class Format(StrEnum):
    TABLE = "table"
    JSON = "json"
    CSV = "csv"


def query(
    sql: Annotated[str, typer.Argument(help="One SELECT, for instance: SELECT * FROM traffic")],
    job: JobOption = DEFAULT_JOB,
    home: HomeOption = None,
    output: Annotated[Format, typer.Option("--format", help="How to print the answer.")] = Format.TABLE,
    as_json: JsonOption = False,
) -> None:
    """Ask the tables (events, quarantine, traffic_live, batches …) and the views traffic and hot_items. Read-only."""
    answer = Warehouse(resolve_home(home), job).sql(sql)
    typer.echo(render(answer, Format.JSON if as_json else output), nl=False)


def render(answer: pa.Table, output: Format) -> str:
    """The rows as text; instants are UTC in ISO form."""
    rows = [{name: _plain(value) for name, value in row.items()} for row in answer.to_pylist()]
    if output is Format.JSON:
        return json.dumps(rows, indent=2, ensure_ascii=False) + "\n"
    cells = [["" if value is None else _text(value) for value in row.values()] for row in rows]
    if output is Format.CSV:
        out = io.StringIO()
        csv.writer(out, lineterminator="\n").writerows([answer.column_names, *cells])
        return out.getvalue()
    return _aligned(answer.column_names, cells)


def _aligned(names: list[str], cells: list[list[str]]) -> str:
    shown = [[cell if len(cell) <= WIDEST else cell[: WIDEST - 1] + "…" for cell in row] for row in cells]
    widths = [max(len(row[index]) for row in [names, *shown]) for index in range(len(names))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in [names, *shown]]
    lines.insert(1, "  ".join("-" * width for width in widths))
    rows = f"({len(cells)} row{'' if len(cells) == 1 else 's'})"
    return "\n".join([*(line.rstrip() for line in lines), rows]) + "\n"


def _plain(value: Any) -> Any:
    """What JSON can hold: exact decimals as text, maps as objects."""
    if isinstance(value, datetime | date):
        return value.isoformat()
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, list):
        pairs = all(isinstance(item, tuple) and len(item) == 2 for item in value)
        return {str(k): _plain(v) for k, v in value} if value and pairs else [_plain(item) for item in value]
    return value if value is None or isinstance(value, bool | int | float | str | dict) else str(value)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
