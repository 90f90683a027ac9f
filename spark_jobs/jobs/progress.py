"""What people see of a running stream: `progress.json` after every batch, and lines on the terminal."""

import sys
import threading
import time
from collections.abc import Callable
from typing import Any, TextIO

from spark_jobs.contracts.layout import Layout
from spark_jobs.contracts.tables import LEDGER
from spark_jobs.contracts.windows import SECOND, to_instant
from spark_jobs.jobs.live_batches import BatchReport
from spark_jobs.sinks.json_files import write_json
from spark_jobs.sinks.live_tables import Cut

LINE_EVERY_SECONDS = 1.0
BAR_WIDTH = 24


class Progress:
    """Tells after each batch; `files_to_drain` turns the line into a bar."""

    def __init__(self, layout: Layout, out: TextIO | None = None) -> None:
        self._layout = layout
        self.files_to_drain: int | None = None
        self._out = out or sys.stderr
        self._files = 0
        self._last: dict[str, Any] = {"batch": None}
        self._alive_at = time.time_ns() // 1_000
        self.in_hand_since: Callable[[], int | None] = lambda: None
        self._writing = threading.Lock()
        self._rows = 0
        self._began = time.monotonic()
        self._told = 0.0

    def __call__(self, report: BatchReport) -> None:
        self._files += report.files
        self._rows += report.counts["read"]
        self._last = self._state(report)
        self.beat()
        now = time.monotonic()
        if now - self._told >= LINE_EVERY_SECONDS:
            self._told = now
            self._tell(self._line(report))

    def resume(self, cut: Cut) -> None:
        """Go on from what the tables hold."""
        self._last = {
            "batch": cut.batch if cut.batch >= 0 else None,
            "epoch": cut.epoch,
            "watermark": None if cut.watermark is None else to_instant(cut.watermark).isoformat(),
            "ledger": {"total": cut.totals},
        }

    def answered(self) -> None:
        """Spark has just answered: the heart beats."""
        self._alive_at = time.time_ns() // 1_000

    def beat(self) -> None:
        """Show when Spark last answered, and since when the same batch is in hand (None: the source is idle)."""
        since = self.in_hand_since()
        beat = {
            "heartbeat_at": to_instant(self._alive_at).isoformat(),
            "in_hand_since": None if since is None else to_instant(since).isoformat(),
        }
        with self._writing:
            write_json(self._layout.progress_file, self._last | beat)

    def _state(self, report: BatchReport) -> dict[str, Any]:
        seconds = max(report.ended - report.started, 1) / SECOND
        return {
            "batch": report.cut.batch,
            "epoch": report.cut.epoch,
            "batch_started_at": to_instant(report.started).isoformat(),
            "committed_at": to_instant(report.ended).isoformat(),
            "batch_seconds": round(seconds, 3),
            "rows_per_second": round(report.counts["read"] / seconds),
            "lag_seconds": round(report.waited / SECOND, 3),
            "watermark": None if report.cut.watermark is None else to_instant(report.cut.watermark).isoformat(),
            "ledger": {"batch": report.counts, "total": report.cut.totals},
        }

    def _line(self, report: BatchReport) -> str:
        elapsed = max(time.monotonic() - self._began, 0.001)
        watermark = report.cut.watermark
        parts = [
            f"batch {report.cut.batch}",
            f"{self._rows / elapsed:,.0f} rows/s",
            f"lag {report.waited / SECOND:.1f} s",
            f"watermark {'none' if watermark is None else to_instant(watermark):%Y-%m-%d %H:%M:%S}"
            if watermark is not None
            else "watermark none",
            ledger_text(report.cut.totals),
        ]
        if self.files_to_drain:
            done = min(self._files / self.files_to_drain, 1.0)
            filled = round(done * BAR_WIDTH)
            parts.insert(0, f"[{'#' * filled}{'.' * (BAR_WIDTH - filled)}] {done:4.0%}")
        return "  ".join(parts)

    def _tell(self, line: str) -> None:
        if self._out.isatty():
            self._out.write(f"\r\x1b[2K{line}")
        else:
            self._out.write(f"{line}\n")
        self._out.flush()

    def finish(self, totals: dict[str, int]) -> None:
        """The last word: the whole ledger."""
        elapsed = time.monotonic() - self._began
        self._tell(f"{self._rows:,} rows in {elapsed:.1f} s; all in all {ledger_text(totals)}")
        if self._out.isatty():
            self._out.write("\n")


def ledger_text(totals: dict[str, int]) -> str:
    """`read 10 = on_time 8 + late 1 + …`, as it must always add up."""
    classes = " + ".join(f"{name} {totals[name]:,}" for name in LEDGER if name != "read")
    return f"read {totals['read']:,} = {classes}"
