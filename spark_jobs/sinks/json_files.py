"""Small JSON files that are whole or absent, whatever happens while they are written."""

import json
import os
from pathlib import Path
from typing import Any


def write_json(path: Path, value: Any, durable: bool = False) -> None:
    """Replace the file in one step; `durable` also survives the machine's fall."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    with draft.open("w", encoding="utf-8") as file:
        json.dump(value, file)
        if durable:
            file.flush()
            os.fsync(file.fileno())
    draft.replace(path)


def read_json(path: Path) -> Any:
    """The content, or None where there is no file."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
