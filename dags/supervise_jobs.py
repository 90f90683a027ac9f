"""### Keeps a stream as its spec says

Deploys the job, watches it by its progress from the triggerer, restarts it by its strategy, rolls it when the spec
changes, and fails loudly when the strategy gives up; the DAG then pauses itself, and `operate_job` with `resume` brings
it back. Marking the task failed suspends the stream; pausing this DAG leaves the stream running, unwatched after the
run in hand. Each run lets go after four hours and the next one takes over.
"""

from datetime import datetime, timedelta

from airflow.sdk import DAG

from include.errors import UsageError
from include.notify import notify_failure
from include.operators.supervise_job import SuperviseJobOperator
from include.settings import JOB_SPECS, load_spec, resolve_home

for file in sorted(JOB_SPECS.glob("*.yaml")):
    try:
        spec = load_spec(file.stem)
    except UsageError:
        continue  # one broken file does not stop other jobs; `tidemark job status` says what is wrong with it
    if not spec.supervise.enabled:
        continue
    with DAG(
        f"supervise_{spec.job}",
        schedule="@continuous",
        start_date=datetime(2026, 1, 1),
        catchup=False,
        max_active_runs=1,
        max_consecutive_failed_dag_runs=1,
        is_paused_upon_creation=False,
        tags=["stream"],
        doc_md=__doc__,
    ) as dag:
        SuperviseJobOperator(
            task_id="supervise",
            job=spec.job,
            home=str(resolve_home()),
            retries=2,
            retry_delay=timedelta(seconds=5),
            on_failure_callback=notify_failure,
        )
    globals()[dag.dag_id] = dag
