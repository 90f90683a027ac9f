"""### What a person does with a job

Choose the job and the action and say why: the reason is kept in the job's history. `suspend` stops after the batch in
hand, `resume` goes on and clears failures (and brings a paused supervisor back), `cancel` stops for good, `restart`
replaces the driver.
"""

from datetime import datetime

from airflow.sdk import Param, dag

from include.operators.operate_job import ACTIONS, OperateJobOperator
from include.settings import JOB_SPECS, resolve_home

JOBS = sorted(file.stem for file in JOB_SPECS.glob("*.yaml"))


@dag(
    schedule=None,
    start_date=datetime(2026, 1, 1),
    catchup=False,
    is_paused_upon_creation=False,
    tags=["stream"],
    doc_md=__doc__,
    params={
        "job": Param(JOBS[0] if JOBS else "", type="string", enum=JOBS or None),
        "action": Param("suspend", type="string", enum=sorted(ACTIONS)),
        "reason": Param("", type="string", minLength=3, description="Why; kept in the job's history."),
    },
)
def operate_job() -> None:
    OperateJobOperator(
        task_id="operate",
        job="{{ params.job }}",
        action="{{ params.action }}",
        reason="{{ params.reason }}",
        home=str(resolve_home()),
    )


operate_job()
