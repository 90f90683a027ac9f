"""Keeps one job as its spec says: acts, then waits in the triggerer, where it costs no worker."""

import time
from pathlib import Path
from typing import Any

from airflow.sdk import BaseOperator
from airflow.sdk.exceptions import AirflowFailException

from include.clients.supervision import Supervision
from include.lifecycle.model import JobPhase, Wait, why
from include.triggers.job_trigger import JobTrigger

WATCH_SECONDS = 4 * 3600.0
"""A run lets go after this long; the next one finds the stream as it is."""


class SuperviseJobOperator(BaseOperator):
    def __init__(self, *, job: str, home: str, watch_seconds: float = WATCH_SECONDS, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.job, self.home, self.watch_seconds = job, home, watch_seconds

    def execute(self, context: Any) -> None:
        self._act_then_watch()

    def go_on(self, context: Any, event: dict[str, Any]) -> None:
        if event["is_over"]:
            self.log.info("%s is %s; this run lets go, the next one watches on", self.job, event["phase"])
            return
        self._act_then_watch()

    def _act_then_watch(self) -> None:
        watch = Supervision(Path(self.home), self.job)
        while not isinstance((decision := watch.step()[1]).action, Wait):
            self.log.info("%s is %s: %s", self.job, decision.phase, decision.action)
            time.sleep(0.1)
        if decision.phase is JobPhase.FAILED:
            raise AirflowFailException(f"{why(decision.action)}; operate_job with `resume` clears it")
        self.defer(trigger=JobTrigger(self.job, self.home, self.watch_seconds), method_name="go_on")
