"""Jobs as people run them: real drivers, apart from whoever started them, through deaths, stalls and wishes."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml

from include.clients import driver_process
from include.clients.supervision import Supervision
from include.lifecycle import wishes
from include.lifecycle.model import Decision, JobPhase
from include.lifecycle.observe import read_process
from include.serving.warehouse import Warehouse
from spark_jobs.sinks.json_files import write_json
from tests.e2e.processes import PROJECT
from tests.harness import CLICKS, land_lines

pytestmark = pytest.mark.spark
PATIENCE_SECONDS = 90
SPEC = {
    "job": "clicks",
    "source": CLICKS,
    "time": {"trigger": "200 milliseconds"},
    "supervise": {"enabled": True, "stall_after": "20 seconds", "stop_within": "20 seconds"},
    "restart": {"strategy": "fixed_delay", "attempts": 3, "delay": "1 second"},
    "resources": {"master": "local[2]", "driver_memory": "512m"},
}


@pytest.fixture
def watch(home: Path) -> Iterator[Supervision]:
    file = home / "clicks.yaml"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(yaml.safe_dump(SPEC), encoding="utf-8")
    watch = Supervision(home, "clicks", file)
    yield watch
    if process := read_process(watch.layout):
        driver_process.kill_driver(process)


def supervise(watch: Supervision, until: Callable[[Decision], bool]) -> list[JobPhase]:
    """Step until the decision is as wanted; the phases on the way, each once."""
    phases: list[JobPhase] = []
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline:
        _, decision = watch.step()
        if not phases or phases[-1] is not decision.phase:
            phases.append(decision.phase)
        if until(decision):
            return phases
        time.sleep(0.1)
    log = watch.layout.log_file
    raise AssertionError(f"{phases}, then nothing; {log.read_text()[-1500:] if log.exists() else 'no log'}")


def is_running(decision: Decision) -> bool:
    return decision.phase is JobPhase.RUNNING


def counted(home: Path) -> int:
    cut = Warehouse(home, "clicks").cut()
    assert cut.totals["read"] == sum(total for name, total in cut.totals.items() if name != "read")
    return cut.totals["read"]


def await_rows(watch: Supervision, rows: int) -> None:
    supervise(watch, lambda decision: is_running(decision) and counted(watch.home) >= rows)
    assert counted(watch.home) == rows


def clicks(first: int) -> list[list[str]]:
    return [[f"{row},{row},1,pv,{1_600_000_000 + row}" for row in range(first, first + 10)]]


def drivers_of(watch: Supervision) -> list[int]:
    """All living processes that were started with the job's settings."""
    found = []
    for cmdline in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = cmdline.read_bytes().split(b"\0")
        except OSError:
            continue
        if os.fsencode(watch.layout.settings_file) in words:
            found.append(int(cmdline.parent.name))
    return found


def test_a_job_lives_through_death_stall_and_wishes(watch: Supervision, home: Path) -> None:
    land_lines(home, clicks(0))
    phases = supervise(watch, is_running)
    assert phases == [JobPhase.CREATED, JobPhase.STARTING, JobPhase.RUNNING]
    await_rows(watch, 10)

    killed = read_process(watch.layout)
    assert killed is not None
    os.killpg(killed.pid, signal.SIGKILL)
    time.sleep(0.1)
    land_lines(home, clicks(10), first=1)
    assert supervise(watch, lambda decision: decision.phase is JobPhase.FAILING) == [JobPhase.FAILING]
    assert supervise(watch, is_running) == [JobPhase.RESTARTING, JobPhase.STARTING, JobPhase.RUNNING]
    await_rows(watch, 20)

    frozen = read_process(watch.layout)
    assert frozen is not None
    assert frozen.pid != killed.pid
    os.killpg(frozen.pid, signal.SIGSTOP)
    land_lines(home, clicks(20), first=2)
    assert JobPhase.STALLED in supervise(watch, lambda decision: decision.phase is JobPhase.RESTARTING)
    assert not driver_process.is_alive(frozen)
    await_rows(watch, 30)

    wishes.suspend(watch.layout, "night")
    phases = supervise(watch, lambda decision: decision.phase is JobPhase.SUSPENDED)
    assert phases == [JobPhase.STOPPING, JobPhase.SUSPENDED]
    assert drivers_of(watch) == []
    land_lines(home, clicks(30), first=3)
    wishes.resume(watch.layout, "morning")
    await_rows(watch, 40)
    wishes.cancel(watch.layout, "over")
    supervise(watch, lambda decision: decision.phase is JobPhase.CANCELLED)
    assert drivers_of(watch) == []
    history = watch.layout.incidents_file.read_text(encoding="utf-8")
    assert all(word in history for word in ("night", "morning", "over", "no heartbeat", "left no word"))


def deploy(watch: Supervision) -> "subprocess.Popen[str]":
    command = [str(Path(sys.executable).with_name("tidemark")), "job", "deploy", "clicks", "--json"]
    options = ["--spec", str(watch.spec_file), "--home", str(watch.home)]
    return subprocess.Popen(
        [*command, *options], cwd=PROJECT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


@pytest.mark.parametrize("number", [8, pytest.param(100, marks=pytest.mark.full)])
def test_many_deploys_at_once_start_one_driver(watch: Supervision, number: int) -> None:
    deploys = [deploy(watch) for _ in range(number)]
    answers = [(one.communicate(timeout=300), one.returncode) for one in deploys]
    assert {code for _, code in answers} == {0}, [words for (_, words), _ in answers if words]
    pids = {json.loads(told)["pid"] for (told, _), _ in answers}
    assert pids == set(drivers_of(watch))
    assert len(pids) == 1


def test_a_pid_that_another_process_has_now_is_not_the_driver(watch: Supervision) -> None:
    write_json(watch.layout.process_file, {"pid": os.getpid(), "started": 1, "fingerprint": "old"})
    write_json(watch.layout.settings_file, {"home": str(watch.home), "spec": SPEC})
    seen, decision = watch.look()
    assert not seen.is_alive
    assert decision.phase is JobPhase.FAILING


def test_a_job_that_cannot_start_gives_up_by_its_strategy_and_says_why(watch: Supervision) -> None:
    broken = SPEC | {"restart": {"strategy": "none"}, "source": CLICKS | {"event": {"event_at": "no_such(ts)"}}}
    assert watch.spec_file is not None
    watch.spec_file.write_text(yaml.safe_dump(broken), encoding="utf-8")
    phases = supervise(watch, lambda decision: decision.phase is JobPhase.FAILED)
    assert phases[-3:] == [JobPhase.FAILING, JobPhase.RESTARTING, JobPhase.FAILED]
    _, decision = watch.look()
    assert "source.event.event_at" in decision.action.why  # type: ignore[union-attr]
