"""What a driver does beside its batches, once a second: show that it lives, serve its inbox, keep its log short."""

import logging
import shutil
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from spark_jobs.contracts.layout import Layout
from spark_jobs.sinks.json_files import read_json, write_json

log = logging.getLogger(__name__)
TICK_SECONDS = 1.0
LOG_BYTES = 16 << 20
KEPT_SECONDS = 24 * 3600

Answer = dict[str, Any]
Serve = Callable[[dict[str, Any]], Answer]


class Ticker(threading.Thread):
    """Ticks until closed; a fault in one tick is logged and does not end the stream."""

    def __init__(self, layout: Layout, beat: Callable[[], None], services: Mapping[str, Serve]) -> None:
        super().__init__(name="ticker", daemon=True)
        self._layout, self._beat, self._services = layout, beat, services
        self._closed = threading.Event()
        _drop_old(layout.inbox.glob(".*.tmp"))  # their writer died before they were whole
        _drop_old(layout.outbox.glob("*.json"))

    def run(self) -> None:
        while True:
            try:
                self._beat()
                serve_inbox(self._layout, self._services)
                shorten(self._layout.log_file)
            except Exception:
                log.exception("a tick failed")
            if self._closed.wait(TICK_SECONDS):
                return

    def close(self) -> None:
        self._closed.set()
        self.join()


def serve_inbox(layout: Layout, services: Mapping[str, Serve]) -> None:
    """Answer every request in the order of its arrival; what cannot be read is answered too, and put away."""
    if not layout.inbox.is_dir():
        return
    requests = (path for path in layout.inbox.glob("*.json") if not path.name.startswith("."))
    for path in sorted(requests, key=lambda path: path.stat().st_mtime_ns):
        answer = layout.outbox / path.name
        if not answer.exists():
            write_json(answer, _answer(path, services), durable=True)
        path.unlink(missing_ok=True)


def _answer(path: Path, services: Mapping[str, Serve]) -> Answer:
    try:
        request = read_json(path)
        kind = request["kind"]
    except (ValueError, TypeError, KeyError) as error:
        return {"id": path.stem, "ok": False, "error": f"the request cannot be read: {error}"}
    if kind not in services:
        return {"id": path.stem, "ok": False, "error": f"no request {kind!r}; there are {', '.join(sorted(services))}"}
    try:
        return {"id": path.stem, "kind": kind, "ok": True} | services[kind](request)
    except Exception as error:
        log.exception("request %s failed", path.stem)
        return {"id": path.stem, "kind": kind, "ok": False, "error": str(error)}


def shorten(path: Path, most: int = LOG_BYTES) -> None:
    """Move what the log holds aside once it is long: Python and the JVM append to the same open file and go on."""
    try:
        if path.stat().st_size <= most:
            return
    except FileNotFoundError:
        return
    shutil.copyfile(path, path.with_name(f"{path.name}.1"))
    with path.open("r+b") as file:
        file.truncate(0)


def _drop_old(files: Iterable[Path]) -> None:
    for file in files:
        if time.time() - file.stat().st_mtime > KEPT_SECONDS:
            file.unlink(missing_ok=True)
