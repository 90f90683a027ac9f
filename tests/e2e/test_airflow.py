"""Airflow as `tidemark up` starts it, with a real stream: deployed, watched, brought back, suspended, left running."""

import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from deltalake.exceptions import TableNotFoundError

from include.clients import driver_process
from include.clients.airflow_api import AirflowApi
from include.clients.airflow_stack import AirflowStack
from include.clients.supervision import Supervision
from include.errors import UsageError
from include.lifecycle.model import JobPhase
from include.lifecycle.observe import read_process
from include.serving.warehouse import Warehouse
from tests.harness import land_lines

pytestmark = pytest.mark.spark
JOB = "live_metrics"
PATIENCE_SECONDS = 120


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture
def stack(home: Path) -> Iterator[AirflowStack]:
    stack = AirflowStack(home)
    yield stack
    stack.down(lambda line: None)
    if process := read_process(Supervision(home, JOB).layout):
        driver_process.kill_driver(process)


def wait_for(what: str, is_so: Callable[[], Any]) -> Any:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline:
        if found := is_so():
            return found
        time.sleep(0.3)
    raise AssertionError(f"not within {PATIENCE_SECONDS} s: {what}")


def phase_of(watch: Supervision) -> JobPhase:
    return watch.look()[1].phase


def counted(home: Path) -> int:
    try:
        return Warehouse(home, JOB).cut().totals["read"]
    except TableNotFoundError:  # the driver is still making its tables
        return 0


def operate(api: AirflowApi, action: str) -> str:
    body = {"logical_date": None, "conf": {"job": JOB, "action": action, "reason": f"a test asks for {action}"}}
    run: str = api.post("/dags/operate_job/dagRuns", body)["dag_run_id"]
    return run


def groups_of(stack: AirflowStack) -> set[int]:
    return {process.pid for process in stack.parts().values()}


def processes_in(groups: set[int]) -> list[str]:
    listing = subprocess.run(["ps", "-eo", "pgid=,stat=,args="], capture_output=True, text=True, check=True).stdout
    rows = [line.split(None, 2) for line in listing.splitlines()]
    return [row[2] for row in rows if len(row) == 3 and int(row[0]) in groups and not row[1].startswith("Z")]


def test_airflow_keeps_a_job_as_its_spec_says(stack: AirflowStack, home: Path) -> None:
    land_lines(home, [["1,1,1,pv,1600000000"]])
    url = stack.up(free_port(), lambda line: None)
    watch = Supervision(home, JOB)
    api = stack.api()
    assert api.get("/importErrors")["import_errors"] == []
    wait_for("the first batch", lambda: (home / "warehouse" / JOB / "current").exists() and counted(home) == 1)
    runs = f"/dags/supervise_{JOB}/dagRuns"
    wait_for(
        "a task that waits in the triggerer",
        lambda: "deferred" in {one["state"] for one in api.get(f"{runs}/~/taskInstances")["task_instances"]},
    )

    killed = read_process(watch.layout)
    assert killed is not None
    os.killpg(killed.pid, signal.SIGKILL)
    land_lines(home, [["2,2,1,pv,1600000001"]], first=1)
    wait_for("a batch of the next driver", lambda: counted(home) == 2)
    assert phase_of(watch) is JobPhase.RUNNING
    assert read_process(watch.layout) != killed

    viewer = AirflowApi(url, stack.passwords_file, "viewer")
    assert viewer.get(runs)["total_entries"] >= 1
    with pytest.raises(UsageError, match="403"):
        operate(viewer, "suspend")
    operate(api, "suspend")
    wait_for("suspended", lambda: phase_of(watch) is JobPhase.SUSPENDED)
    land_lines(home, [["3,3,1,pv,1600000002"]], first=2)
    operate(api, "resume")
    wait_for("a batch after resume", lambda: counted(home) == 3)

    groups = groups_of(stack)
    port = f"{int(url.rpartition(':')[2]):04X}"
    tables = [table for name in ("tcp", "tcp6") if (table := Path(f"/proc/net/{name}")).exists()]
    rows = [line.split() for table in tables for line in table.read_text().splitlines()[1:]]
    listening = {row[1].split(":")[0] for row in rows if row[3] == "0A" and row[1].endswith(f":{port}")}
    assert listening == {"0100007F"}, "loopback only"
    secrets = [*_secrets(stack)]
    assert secrets
    shown = "\n".join(processes_in(groups)) + "".join(file.read_text() for file in stack.folder.rglob("*.log"))
    assert not [secret for secret in secrets if secret in shown]
    stack.down(lambda line: None)
    assert processes_in(groups) == []
    assert phase_of(watch) is JobPhase.RUNNING, "the stream goes on without Airflow"


def _secrets(stack: AirflowStack) -> Iterator[str]:
    for name in ("secrets.json", "passwords.json"):
        file = stack.folder / name
        assert file.stat().st_mode & 0o077 == 0
        yield from json.loads(file.read_text(encoding="utf-8")).values()


@pytest.mark.full
def test_up_and_down_again_and_again_leaves_nothing(stack: AirflowStack) -> None:
    port = free_port()
    for _ in range(20):
        stack.up(port, lambda line: None)
        groups = groups_of(stack)
        assert len(groups) == 4
        stack.down(lambda line: None)
        assert processes_in(groups) == []


def test_a_port_that_is_taken_is_named_before_anything_starts(stack: AirflowStack) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(UsageError, match=f"port {port} is taken"):
            stack.up(port, lambda line: None)
    assert stack.parts() == {}
