"""This project's stream as the benchmarks run it: a spec for generated clicks, and the command a person would type."""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from benchmarks.windows import CORES, GRAINS, HOT_LENGTH, HOT_SLIDE, HOT_TOP, WATERMARK_SECONDS

JOB = "bench"


@dataclass(frozen=True)
class StreamJob:
    """A stream over `clicks`, a folder of CSV files; everything it writes lies in `home`."""

    home: Path
    clicks: Path
    files_per_batch: int
    trigger: str = "1 second"

    @property
    def spec_file(self) -> Path:
        return self.home / "bench.yaml"

    def write_spec(self) -> None:
        self.home.mkdir(parents=True, exist_ok=True)
        self.spec_file.write_text(yaml.safe_dump(self._spec(), sort_keys=False), encoding="utf-8")

    def command(self, drain: bool) -> list[str]:
        tidemark = Path(sys.executable).with_name("tidemark")
        options = ["--spec", str(self.spec_file), "--home", str(self.home)]
        return [str(tidemark), "run", JOB, *options, *(["--drain"] if drain else [])]

    def _spec(self) -> dict[str, Any]:
        return {
            "job": JOB,
            "source": {
                "kind": "files",
                "path": str(self.clicks),
                "format": "csv",
                "schema": "user_id BIGINT, item_id BIGINT, category_id BIGINT, behavior STRING, ts BIGINT",
                "event": {
                    "event_at": "timestamp_seconds(ts)",
                    "visitor_id": "cast(user_id AS string)",
                    "item_id": "cast(item_id AS string)",
                    "category_id": "cast(category_id AS string)",
                    "action": "CASE behavior WHEN 'pv' THEN 'view' ELSE behavior END",
                },
                "rules": {
                    "known_action": "action IN ('view', 'buy', 'cart', 'fav')",
                    "dated": "event_at >= '2000-01-01'",
                },
                "intake": {"files_per_batch": self.files_per_batch},
            },
            "time": {"zone": "UTC", "watermark_delay": f"{WATERMARK_SECONDS} seconds", "trigger": self.trigger},
            "metrics": {
                "traffic": {"grains": list(GRAINS)},
                "hot_items": {
                    "length": f"{HOT_LENGTH} seconds",
                    "slide": f"{HOT_SLIDE} seconds",
                    "top": HOT_TOP,
                    "action": "view",
                },
            },
            "resources": {"master": f"local[{CORES}]", "shuffle_partitions": CORES},
        }
