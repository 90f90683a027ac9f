"""Airflow on this machine: its configuration, its four processes, their start in order, their end without remains."""

import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from include.clients.airflow_api import AirflowApi
from include.clients.driver_process import is_alive
from include.errors import UsageError
from include.lifecycle.model import Process
from include.settings import PROJECT
from spark_jobs.sinks.json_files import read_json, write_json
from spark_jobs.sinks.processes import start_ticks

LOOPBACK = "127.0.0.1"
DEFAULT_PORT = 8080
START_SECONDS = 120.0
STOP_SECONDS = 30.0
USERS = {"admin": "admin", "viewer": "viewer"}
"""User and role."""

_CONFIG = """\
# Written by `tidemark up`; changes here are overwritten.
[core]
dags_folder = {dags}
load_examples = False
executor = LocalExecutor
parallelism = 4
dags_are_paused_at_creation = True
fernet_key = {fernet_key}
execution_api_server_url = {url}/execution/
simple_auth_manager_users = {users}
simple_auth_manager_passwords_file = {passwords}

[api]
host = 127.0.0.1
port = {port}
base_url = {url}
secret_key = {secret_key}
workers = 1

[api_auth]
jwt_secret = {jwt_secret}

[database]
sql_alchemy_conn = sqlite:///{database}

[logging]
base_log_folder = {logs}

[scheduler]
orphaned_tasks_check_interval = 15
enable_health_check = False

[dag_processor]
refresh_interval = 10
"""


@dataclass(frozen=True)
class Part:
    """One process of Airflow, in the order of the start."""

    name: str
    arguments: tuple[str, ...] = ()


PARTS = (
    Part("api-server", ("--workers", "1")),
    Part("scheduler", ("--skip-serve-logs",)),
    Part("dag-processor"),
    Part("triggerer", ("--skip-serve-logs",)),
)


@dataclass(frozen=True)
class AirflowStack:
    home: Path

    @property
    def folder(self) -> Path:
        return self.home / "airflow"

    @property
    def passwords_file(self) -> Path:
        return self.folder / "passwords.json"

    @property
    def _stack_file(self) -> Path:
        return self.folder / "stack.json"

    def url(self) -> str | None:
        held = read_json(self._stack_file)
        return held["url"] if held else None

    def up(self, port: int, tell: Callable[[str], None]) -> str:
        """Start what does not run yet and wait until all of it is healthy; returns the address."""
        running = self.parts()
        held = read_json(self._stack_file)
        if held and "api-server" in running:
            port = held["port"]
        elif not _is_free(port):
            raise UsageError(f"port {port} is taken; choose another with --port")
        url = f"http://{LOOPBACK}:{port}"
        self._configure(port, url)
        tell("airflow: database")
        self._airflow("db", "migrate")
        for part in PARTS:
            if part.name not in running:
                tell(f"airflow: {part.name}")
                self._start(part, port, url)
            if part.name == "api-server":
                self._await(url, lambda health: True, "the api-server")
        self._await(url, _all_healthy, "all parts")
        return url

    def down(self, tell: Callable[[str], None]) -> None:
        """End all parts, the last started first; the hard way for those that do not listen."""
        running = self.parts()
        for part in reversed(PARTS):
            if process := running.get(part.name):
                tell(f"airflow: {part.name} ends")
                _end(process)
        self._stack_file.unlink(missing_ok=True)

    def parts(self) -> dict[str, Process]:
        """The parts that run."""
        held = read_json(self._stack_file) or {"parts": {}}
        found = {
            name: Process(part["pid"], part["started"], datetime.fromisoformat(part["started_at"]), "")
            for name, part in held["parts"].items()
        }
        return {name: process for name, process in found.items() if is_alive(process)}

    def health(self) -> dict[str, str]:
        url = self.url()
        found = _health(url) if url else None
        return {name: part["status"] or "unknown" for name, part in (found or {}).items()}

    def api(self, user: str = "admin") -> AirflowApi:
        url = self.url()
        if url is None:
            raise UsageError("Airflow is not running here; start it with `tidemark up`")
        return AirflowApi(url, self.passwords_file, user)

    def unpause(self, dag: str) -> None:
        """Let a supervisor that paused itself go on."""
        self.api().unpause(dag)

    def _configure(self, port: int, url: str) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        self.folder.chmod(0o700)
        kept = self.folder / "secrets.json"
        made = read_json(kept) or {
            "fernet_key": _fernet_key(),
            "secret_key": secrets.token_urlsafe(32),
            "jwt_secret": secrets.token_urlsafe(48),
        }
        _write_private(kept, json.dumps(made))
        if not self.passwords_file.exists():
            _write_private(self.passwords_file, json.dumps({user: secrets.token_urlsafe(12) for user in USERS}))
        text = _CONFIG.format(
            dags=PROJECT / "dags",
            url=url,
            port=port,
            users=",".join(f"{user}:{role}" for user, role in USERS.items()),
            passwords=self.passwords_file,
            database=self.folder / "airflow.db",
            logs=self.folder / "logs",
            **{name: value.replace("%", "%%") for name, value in made.items()},
        )
        _write_private(self.folder / "airflow.cfg", text)

    def environment(self) -> dict[str, str]:
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("AIRFLOW")}
        return inherited | {
            "AIRFLOW_HOME": str(self.folder),
            "TIDEMARK_HOME": str(self.home),
            "PYTHONPATH": str(PROJECT),
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}",
            "no_proxy": "*",
        }

    def _airflow(self, *arguments: str) -> None:
        command = [sys.executable, "-m", "airflow", *arguments]
        done = subprocess.run(command, env=self.environment(), cwd=self.folder, capture_output=True, text=True)
        if done.returncode:
            raise UsageError(f"airflow {' '.join(arguments)} failed: {(done.stderr or done.stdout).strip()[-600:]}")

    def _start(self, part: Part, port: int, url: str) -> None:
        with (self.folder / f"{part.name}.log").open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "airflow", part.name, *part.arguments],
                env=self.environment(),
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        held = read_json(self._stack_file) or {"parts": {}}
        held |= {"url": url, "port": port}
        held["parts"][part.name] = {
            "pid": process.pid,
            "started": start_ticks(process.pid),
            "started_at": datetime.now(UTC).isoformat(),
        }
        write_json(self._stack_file, held)

    def _await(self, url: str, is_fine: Callable[[dict[str, dict[str, str]]], bool], what: str) -> None:
        deadline = time.monotonic() + START_SECONDS
        while True:
            health = _health(url)
            if health is not None and is_fine(health):
                return
            held = read_json(self._stack_file) or {"parts": {}}
            if dead := set(held["parts"]) - set(self.parts()):
                name = min(dead)
                raise UsageError(f"airflow {name} ended: see {self.folder / name}.log; `tidemark down`, then try again")
            if time.monotonic() > deadline:
                raise UsageError(f"{what} of Airflow did not become healthy: see the logs in {self.folder}")
            time.sleep(0.5)


def _all_healthy(health: dict[str, dict[str, str]]) -> bool:
    return all(health.get(name, {}).get("status") == "healthy" for name in ("scheduler", "dag_processor", "triggerer"))


def _health(url: str) -> dict[str, dict[str, str]] | None:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(f"{url}/api/v2/monitor/health", timeout=5) as answer:
            found: dict[str, dict[str, str]] = json.load(answer)
            return found
    except (urllib.error.URLError, OSError, ValueError):
        return None


def _end(process: Process) -> None:
    os.killpg(process.pid, signal.SIGTERM)
    deadline = time.monotonic() + STOP_SECONDS
    while _group_lives(process.pid) and time.monotonic() < deadline:
        is_alive(process)  # buries it, if it is a child of ours
        time.sleep(0.1)
    if _group_lives(process.pid):
        os.killpg(process.pid, signal.SIGKILL)


def _group_lives(group: int) -> bool:
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, found = stat.read_text().rpartition(")")[2].split()[:3]
        except OSError:
            continue
        if int(found) == group and state not in "ZX":
            return True
    return False


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
    return True


def _fernet_key() -> str:
    from cryptography.fernet import Fernet

    return Fernet.generate_key().decode()


def _write_private(path: Path, text: str) -> None:
    """Readable by its owner alone from its first byte on."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
        file.write(text)
    draft.replace(path)
