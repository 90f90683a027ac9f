"""`tidemark job …`: what a person does with a job, and what they see of it."""

import time
from collections.abc import Callable
from typing import Annotated, Any

import typer

from include.cli.options import HomeOption, JsonOption, SpecOption
from include.cli.output import emit
from include.clients.airflow_stack import AirflowStack
from include.clients.supervision import Supervision
from include.errors import UsageError
from include.lifecycle import wishes
from include.lifecycle.model import Decision, JobPhase, Observation, Wait, why
from include.settings import load_spec, resolve_home
from spark_jobs.contracts.layout import Layout
from spark_jobs.sinks.json_files import read_json

JobArgument = Annotated[str, typer.Argument(help="The job, as its spec names it.")]
ReasonOption = Annotated[str, typer.Option("--reason", help="Why; kept in the job's history.")]
WaitOption = Annotated[bool, typer.Option("--wait/--no-wait", help="Carry it out now and wait until it is done.")]

job_app = typer.Typer(
    help="Deploy, suspend, resume, cancel and restart jobs, and see how they are.", no_args_is_help=True
)


@job_app.command()
def status(job: JobArgument, spec: SpecOption = None, home: HomeOption = None, as_json: JsonOption = False) -> None:
    """The job's phase, since when and why, its restarts, its last batch and how far it lags."""
    watch = _supervision(job, spec, home)
    seen, decision = watch.look()
    told = describe(watch.layout, seen, decision)
    emit(told, as_json, _text(told))


def _command(ask: Callable[[Layout, str], None], fulfilled: frozenset[JobPhase]) -> Callable[..., None]:
    def command(
        job: JobArgument,
        spec: SpecOption = None,
        home: HomeOption = None,
        reason: ReasonOption = "",
        wait: WaitOption = True,
        as_json: JsonOption = False,
    ) -> None:
        watch = _supervision(job, spec, home)
        ask(watch.layout, reason)
        if fulfilled == _UP:
            _wake_supervisor(watch)
        if wait:
            _carry_out(watch, fulfilled)
        told = describe(watch.layout, *watch.look())
        emit(told, as_json, _text(told))

    return command


_UP = frozenset({JobPhase.STARTING, JobPhase.RUNNING})
for _name, _ask, _fulfilled, _help in (
    ("deploy", wishes.deploy, _UP, "Start the job: exactly one driver, however often and by whomever it is asked for."),
    (
        "suspend",
        wishes.suspend,
        {JobPhase.SUSPENDED},
        "Stop the job after the batch in hand; `resume` goes on.",
    ),
    ("resume", wishes.resume, _UP, "Go on with a suspended job, or with one whose restart strategy gave up."),
    ("cancel", wishes.cancel, {JobPhase.CANCELLED}, "Stop the job after the batch in hand, for good; its tables stay."),
    ("restart", wishes.restart, _UP, "Stop the job after the batch in hand and start it again."),
):
    job_app.command(_name, help=_help)(_command(_ask, frozenset(_fulfilled)))


def supervise(job: JobArgument, spec: SpecOption = None, home: HomeOption = None, as_json: JsonOption = False) -> None:
    """Keep a job as its spec says until Ctrl-C, without Airflow; the stream goes on when this ends."""
    watch = _supervision(job, spec, home)
    told = ""
    while True:
        seen, decision = watch.step()
        phase, reason = str(decision.phase), why(decision.action)
        if told != phase:
            value = {"at": seen.now, "job": job, "phase": phase, "why": reason}
            emit(value, as_json, f"{seen.now:%H:%M:%S}  {job}  {phase}  {reason}")
        told = phase
        if decision.phase is JobPhase.FAILED:
            raise UsageError(f"job {job} failed: {reason}; `tidemark job resume {job}` clears it")
        time.sleep(decision.action.seconds if isinstance(decision.action, Wait) else 0.1)


def describe(layout: Layout, seen: Observation, decision: Decision) -> dict[str, Any]:
    phases = [incident for incident in seen.incidents if incident.kind == "phase"]
    since = phases[-1].at if phases and phases[-1].phase == decision.phase else seen.now
    progress = read_json(layout.progress_file) or {}
    return {
        "job": layout.job,
        "phase": str(decision.phase),
        "since": since.isoformat(timespec="seconds"),
        "why": why(decision.action),
        "pid": seen.process.pid if seen.process and seen.is_alive else None,
        "failures": sum(1 for incident in seen.incidents if incident.kind == "failure"),
        "restarts": max(sum(1 for incident in seen.incidents if incident.kind == "deployed") - 1, 0),
        **{
            key: progress.get(key)
            for key in ("batch", "epoch", "committed_at", "rows_per_second", "lag_seconds", "watermark", "ledger")
        },
        "incidents": [f"{one.at:%Y-%m-%d %H:%M:%S} {one.kind} {one.phase} {one.why}" for one in seen.incidents[-5:]],
    }


def _text(told: dict[str, Any]) -> str:
    lines = [f"{told['job']}: {told['phase']} since {told['since']} ({told['why']})"]
    lines.append(f"  pid {told['pid'] or 'none'}, {told['failures']} failures, {told['restarts']} restarts so far")
    if told["batch"] is not None:
        lines.append(
            f"  batch {told['batch']} at {told['committed_at']}, {told['rows_per_second']:,} rows/s, "
            f"lag {told['lag_seconds']} s, watermark {told['watermark']}"
        )
    return "\n".join([*lines, *(f"  {line}" for line in told["incidents"])])


def _supervision(job: str, spec: Any, home: Any) -> Supervision:
    watch = Supervision(resolve_home(home), job, spec)
    if not watch.layout.settings_file.exists():
        load_spec(job, spec)
    return watch


def _wake_supervisor(watch: Supervision) -> None:
    """A supervising DAG pauses itself when its job fails; where Airflow runs here, it watches on."""
    stack = AirflowStack(watch.home)
    if watch.spec.supervise.enabled and "api-server" in stack.parts():
        stack.unpause(f"supervise_{watch.job}")


def _carry_out(watch: Supervision, fulfilled: frozenset[JobPhase]) -> None:
    """Act until the wish is fulfilled, as a supervisor would; where one is at work, both together do no more."""
    limits = watch.spec.supervise
    deadline = time.monotonic() + (limits.stop_within + limits.stall_after).total_seconds()
    while True:
        _, decision = watch.step()
        if decision.phase in fulfilled and isinstance(decision.action, Wait):
            return
        if decision.phase is JobPhase.FAILED:
            raise UsageError(f"job {watch.job} failed: {why(decision.action)}")
        if time.monotonic() > deadline:
            raise UsageError(
                f"job {watch.job} is still {decision.phase}: {why(decision.action)}; see `tidemark job status`"
            )
        time.sleep(0.1)
