"""`tidemark up`, `down` and `status`: Airflow on this machine, and how everything is."""

from typing import Annotated

import typer

from include.cli.job import describe
from include.cli.options import HomeOption, JsonOption
from include.cli.output import emit
from include.clients.airflow_stack import DEFAULT_PORT, USERS, AirflowStack
from include.clients.supervision import Supervision
from include.settings import resolve_home


def up(
    home: HomeOption = None,
    port: Annotated[int, typer.Option(help="Where Airflow listens, on loopback.")] = DEFAULT_PORT,
    as_json: JsonOption = False,
) -> None:
    """Start Airflow here and wait until it is healthy; what runs already is left alone."""
    stack = AirflowStack(resolve_home(home))
    url = stack.up(port, lambda line: None if as_json else typer.echo(line, err=True))
    told = {"url": url, "users": list(USERS), "passwords": str(stack.passwords_file)}
    emit(told, as_json, f"Airflow: {url}\nusers: {', '.join(USERS)}; their passwords: {stack.passwords_file}")


def down(home: HomeOption = None, as_json: JsonOption = False) -> None:
    """End Airflow; streams go on (`tidemark job suspend` stops one)."""
    stack = AirflowStack(resolve_home(home))
    parts = list(stack.parts())
    stack.down(lambda line: None if as_json else typer.echo(line, err=True))
    emit({"ended": parts}, as_json, "Airflow is down" if parts else "Airflow was not running")


def status(home: HomeOption = None, as_json: JsonOption = False) -> None:
    """How Airflow and every job of this home are."""
    root = resolve_home(home)
    stack = AirflowStack(root)
    parts = {name: process.pid for name, process in stack.parts().items()}
    jobs = []
    for folder in sorted((root / "jobs").glob("*/settings.json")):
        watch = Supervision(root, folder.parent.name)
        jobs.append(describe(watch.layout, *watch.look()))
    told = {"airflow": {"url": stack.url() if parts else None, "parts": parts, "health": stack.health()}, "jobs": jobs}
    lines = [f"Airflow: {stack.url()}, {', '.join(parts)}" if parts else "Airflow: not running"]
    lines += [f"{job['job']}: {job['phase']} since {job['since']} ({job['why']})" for job in jobs]
    emit(told, as_json, "\n".join(lines))
