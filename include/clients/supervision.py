"""Observe, decide, act on one job: the loop that `tidemark supervise` and Airflow's trigger share."""

from dataclasses import dataclass
from pathlib import Path

from include.clients import driver_process
from include.errors import UsageError
from include.lifecycle.act import Hands, act
from include.lifecycle.decide import decide
from include.lifecycle.model import Decision, Observation, Process
from include.lifecycle.observe import observe
from include.settings import load_spec
from spark_jobs.contracts.layout import Layout
from spark_jobs.settings import JobSpec
from spark_jobs.sinks.epochs import current_checkpoint
from spark_jobs.sinks.json_files import read_json
from spark_jobs.sinks.shape import refusal


class LocalDrivers:
    """Drivers as processes of this machine."""

    def start(self, layout: Layout, spec: JobSpec, fingerprint: str) -> Process:
        return driver_process.start_driver(layout, spec, fingerprint)

    def kill(self, process: Process) -> None:
        driver_process.kill_driver(process)


@dataclass(frozen=True)
class Supervision:
    """One job under watch."""

    home: Path
    job: str
    spec_file: Path | None = None

    @property
    def layout(self) -> Layout:
        return Layout(self.home, self.job)

    @property
    def spec(self) -> JobSpec:
        """The spec to go by."""
        return self._spec()[0]

    def look(self) -> tuple[Observation, Decision]:
        """What is seen and what would be done; nothing is."""
        _, seen, decision = self._look()
        return seen, decision

    def step(self) -> tuple[Observation, Decision]:
        """Do the one next thing. Whoever else supervises the job at the same time waits and then sees it done."""
        with driver_process.only_one(self.layout):
            spec, seen, decision = self._look()
            act(Hands(self.layout, spec, spec.fingerprint, LocalDrivers()), seen, decision)
        return seen, decision

    def _look(self) -> tuple[JobSpec, Observation, Decision]:
        spec, refused = self._spec()
        seen = observe(self.layout, driver_process.is_alive, spec.supervise.stall_after, refused)
        return spec, seen, decide(spec, spec.fingerprint, seen)

    def _spec(self) -> tuple[JobSpec, str | None]:
        """The spec to go by, and why the file as it is now is not: then it is the one the job runs with."""
        try:
            wanted = load_spec(self.job, self.spec_file)
        except UsageError as error:
            if (running := self._running_spec()) is None:
                raise
            return running, str(error)
        refused = refusal(self.layout.shape_file(current_checkpoint(self.layout)), wanted)
        running = self._running_spec()
        return (running, refused) if refused and running else (wanted, refused)

    def _running_spec(self) -> JobSpec | None:
        held = read_json(self.layout.settings_file)
        return JobSpec.model_validate(held["spec"]) if held else None
