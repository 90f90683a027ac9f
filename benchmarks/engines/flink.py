"""Flink SQL, from the package on PyPI, whose pins fit no other environment."""

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from benchmarks.answers import Answer, answer_of
from benchmarks.engines.engine import Run
from benchmarks.windows import HEAP_GB
from include.settings import PROJECT

VERSION = "2.3.0"
REQUIREMENTS = ("setuptools<80", f"apache-flink=={VERSION}")


class Flink:
    name = "flink"
    title = f"Flink SQL {VERSION}, heap state, no raw rows stored"

    def __init__(self, work: Path) -> None:
        self._environment = work / f"flink-{VERSION}"

    @property
    def _python(self) -> Path:
        return self._environment / "bin" / "python"

    def prepare(self) -> None:
        """Make the virtual environment; about 850 MB."""
        ready = self._environment / "ready"
        if ready.exists():
            return
        shutil.rmtree(self._environment, ignore_errors=True)
        environment = {"UV_SYSTEM_CERTS": "1"} | os.environ  # certificates of the machine: a company may add its own
        for command in _install_commands(self._environment, self._python):
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=environment)
        ready.touch()

    def command(self, run: Run) -> list[str]:
        clicks, out = run.dataset.single.as_uri(), run.folder.as_uri()
        return [str(self._python), "-m", "benchmarks.engines.flink_job", clicks, out]

    def environment(self, run: Run) -> Mapping[str, str]:
        return {"PYTHONPATH": str(PROJECT), "JVM_ARGS": f"-Xmx{HEAP_GB}g", "FLINK_LOG_DIR": str(run.folder)}

    def answer(self, run: Run) -> Answer:
        traffic = "{grain: 'VARCHAR', window_start: 'BIGINT', page_views: 'BIGINT', unique_visitors: 'BIGINT'}"
        hot_items = "{window_end: 'BIGINT', rank: 'BIGINT', item_id: 'BIGINT', page_views: 'BIGINT'}"
        return answer_of(
            f"SELECT *, 0 AS relative_error FROM {_csv(run.folder / 'traffic', traffic)}",
            f"FROM {_csv(run.folder / 'hot_items', hot_items)}",
        )


def _install_commands(environment: Path, python: Path) -> list[list[str]]:
    uv = shutil.which("uv", path=os.pathsep.join((str(PROJECT / ".tools" / "bin"), os.environ.get("PATH", ""))))
    if uv:
        return [
            [uv, "venv", "--quiet", "--python", sys.executable, str(environment)],
            [uv, "pip", "install", "--quiet", "--python", str(python), *REQUIREMENTS],
        ]
    return [
        [sys.executable, "-m", "venv", str(environment)],
        [str(python), "-m", "pip", "install", "--quiet", *REQUIREMENTS],
    ]


def _csv(folder: Path, columns: str) -> str:
    return f"read_csv('{folder}/part-*', header = false, auto_detect = false, columns = {columns})"
