"""Watches one job from the triggerer and fires once there is something to do."""

import asyncio
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from airflow.triggers.base import BaseTrigger, TriggerEvent

from include.clients.supervision import Supervision
from include.lifecycle import wishes
from include.lifecycle.model import JobPhase, Wait, why

POLL_SECONDS = 1.0


class JobTrigger(BaseTrigger):
    """Looks every second; `watch_seconds` later it fires also when all is well, so that runs and logs stay short."""

    def __init__(self, job: str, home: str, watch_seconds: float) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.job, self.home, self.watch_seconds = job, home, watch_seconds

    def serialize(self) -> tuple[str, dict[str, Any]]:
        return (
            "include.triggers.job_trigger.JobTrigger",
            {"job": self.job, "home": self.home, "watch_seconds": self.watch_seconds},
        )

    async def run(self) -> AsyncIterator[TriggerEvent]:
        watch = Supervision(Path(self.home), self.job)
        until = time.monotonic() + self.watch_seconds
        told: JobPhase | None = None
        while True:
            _, decision = await asyncio.to_thread(watch.look)
            if decision.phase is not told:
                self.log.info("%s is %s: %s", self.job, decision.phase, why(decision.action))
                told = decision.phase
                if isinstance(decision.action, Wait):
                    await asyncio.to_thread(watch.step)  # does no more than note the phase
            is_over = time.monotonic() > until
            if not isinstance(decision.action, Wait) or decision.phase is JobPhase.FAILED or is_over:
                found = {"job": self.job, "phase": str(decision.phase), "is_over": is_over}
                yield TriggerEvent(found)  # type: ignore[no-untyped-call]
                return
            await asyncio.sleep(POLL_SECONDS)

    async def on_kill(self) -> None:
        """A person marked the task failed or cleared it: the stream is to stop with it."""
        watch = Supervision(Path(self.home), self.job)
        wishes.suspend(watch.layout, "its task was ended in Airflow")
        while (await asyncio.to_thread(watch.step))[1].phase is JobPhase.STOPPING:
            await asyncio.sleep(0.2)
