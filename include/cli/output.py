"""What a command says on standard output: the same answer as text for people or as JSON for programs."""

import json
from typing import Any

import typer


def emit(value: dict[str, Any], as_json: bool, text: str) -> None:
    """Print `value` as JSON if asked for, else `text`; what JSON has no type for is written as its text."""
    typer.echo(json.dumps(value, indent=2, ensure_ascii=False, default=str) if as_json else text)
