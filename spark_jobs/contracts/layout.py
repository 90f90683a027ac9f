"""Where a job's things lie under the home."""

from dataclasses import dataclass
from pathlib import Path

FIRST_GENERATION = 1


@dataclass(frozen=True)
class Layout:
    """Paths of one job; `current` names the generation of live tables that readers use."""

    home: Path
    job: str

    @property
    def job_home(self) -> Path:
        return self.home / "jobs" / self.job

    @property
    def warehouse(self) -> Path:
        return self.home / "warehouse" / self.job

    @property
    def current(self) -> Path:
        return self.warehouse / "current"

    @property
    def epoch_file(self) -> Path:
        return self.job_home / "epoch"

    @property
    def progress_file(self) -> Path:
        return self.job_home / "progress.json"

    @property
    def process_file(self) -> Path:
        return self.job_home / "process.json"

    @property
    def lock_file(self) -> Path:
        return self.job_home / "lock"

    @property
    def settings_file(self) -> Path:
        """What the driver was started with."""
        return self.job_home / "settings.json"

    @property
    def ended_file(self) -> Path:
        return self.job_home / "ended.json"

    @property
    def desired_file(self) -> Path:
        return self.job_home / "desired.json"

    @property
    def incidents_file(self) -> Path:
        return self.job_home / "incidents.jsonl"

    @property
    def log_file(self) -> Path:
        return self.job_home / "driver.log"

    @property
    def inbox(self) -> Path:
        return self.job_home / "inbox"

    @property
    def outbox(self) -> Path:
        return self.job_home / "outbox"

    def generation(self, number: int) -> Path:
        return self.warehouse / "generations" / str(number)

    def checkpoint(self, name: str) -> Path:
        return self.job_home / "checkpoints" / name

    def shape_file(self, checkpoint: str) -> Path:
        return self.checkpoint(checkpoint) / "shape.json"
