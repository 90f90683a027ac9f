"""`tidemark run`: a job's stream in the foreground."""

import os
import signal
import subprocess
import sys
from typing import Annotated

import typer

from include.cli.options import HomeOption, JsonOption, SpecOption
from include.cli.output import emit
from include.settings import PROJECT, load_spec, resolve_home, source_path
from spark_jobs.contracts.layout import Layout
from spark_jobs.settings import FilesSource
from spark_jobs.sinks.json_files import read_json, write_json


def run(
    job: Annotated[str, typer.Argument(help="The job, as its spec names it.")],
    spec: SpecOption = None,
    home: HomeOption = None,
    drain: Annotated[bool, typer.Option("--drain", help="End when the input is used up.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Run a job's stream here until Ctrl-C, or with --drain until its input is used up."""
    root = resolve_home(home)
    loaded = load_spec(job, spec)
    for source in loaded.source:
        if isinstance(source, FilesSource):
            source_path(root, source)
    layout = Layout(root, job)
    settings = layout.job_home / "run.json"
    body = {"home": str(root), "spec": loaded.model_dump(mode="json", by_alias=True, exclude_none=True), "drain": drain}
    write_json(settings, body)
    code = _follow([sys.executable, "-m", "spark_jobs.jobs.stream_live_metrics", str(settings)])
    if code == 0:
        progress = read_json(layout.progress_file) or {}
        emit({"job": job, "home": str(root)} | progress, as_json, "")
    raise typer.Exit(code)


def _follow(command: list[str]) -> int:
    """Run the program in front; Ctrl-C and a polite kill reach it, and its end is waited for."""
    child = subprocess.Popen(command, cwd=PROJECT, env=os.environ | {"PYTHONPATH": str(PROJECT)})
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the terminal sends it to the child too
    signal.signal(signal.SIGTERM, lambda number, _: child.send_signal(number))
    return child.wait()
