"""What a person asks of a job, from Airflow: written down with who and why, then waited for."""

from pathlib import Path
from typing import Any

from airflow.sdk import BaseOperator
from airflow.sdk.exceptions import AirflowFailException

from include.clients.airflow_stack import AirflowStack
from include.clients.supervision import Supervision
from include.errors import UsageError
from include.lifecycle import wishes

ACTIONS = {
    "suspend": wishes.suspend,
    "resume": wishes.resume,
    "cancel": wishes.cancel,
    "restart": wishes.restart,
    "deploy": wishes.deploy,
}

GOING_ON = ("deploy", "restart", "resume")


class OperateJobOperator(BaseOperator):
    template_fields = ("job", "action", "reason")

    def __init__(self, *, job: str, action: str, reason: str, home: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.job, self.action, self.reason, self.home = job, action, reason, home

    def execute(self, context: Any) -> dict[str, str]:
        watch = Supervision(Path(self.home), self.job)
        try:
            watch.look()  # a job that is not there is told before anything is written
            ACTIONS[self.action](watch.layout, self.reason)
            _, decision = watch.step()
            if self.action in GOING_ON:
                AirflowStack(Path(self.home)).unpause(f"supervise_{self.job}")
        except UsageError as error:
            raise AirflowFailException(str(error)) from None
        self.log.info("%s: %s asked for; the job is %s", self.job, self.action, decision.phase)
        return {"job": self.job, "action": self.action, "phase": str(decision.phase)}
