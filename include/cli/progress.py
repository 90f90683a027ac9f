"""How far a long command has come, on standard error, so that standard output holds the answer alone."""

import sys
import time
from types import TracebackType
from typing import Self

TERMINAL_SECONDS = 0.2
LOG_SECONDS = 10.0


class ProgressLine:
    """One line that rewrites itself on a terminal; elsewhere a line every ten seconds."""

    def __init__(self) -> None:
        self._on_terminal = sys.stderr.isatty()
        self._shown_at = time.monotonic()
        self._open = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._open:
            sys.stderr.write("\n")

    def show(self, text: str) -> None:
        now = time.monotonic()
        if now - self._shown_at < (TERMINAL_SECONDS if self._on_terminal else LOG_SECONDS):
            return
        self._shown_at = now
        self._open = self._on_terminal
        sys.stderr.write(f"\r\033[K{text}" if self._on_terminal else f"{text}\n")
        sys.stderr.flush()
