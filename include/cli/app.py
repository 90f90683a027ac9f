"""The `tidemark` command."""

import sys

import typer

from include.cli.doctor import doctor
from include.cli.job import job_app, supervise
from include.cli.land import land
from include.cli.produce import produce
from include.cli.query import query
from include.cli.run import run
from include.cli.stack import down, status, up
from include.errors import UsageError
from spark_jobs.errors import TidemarkError

app = typer.Typer(
    help="Live page views, unique visitors and hot items that batch corrects.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
for command in (up, down, status, run, supervise, land, produce, query, doctor):
    app.command()(command)
app.add_typer(job_app, name="job")


def main() -> None:
    try:
        app()
    except (UsageError, TidemarkError) as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)
