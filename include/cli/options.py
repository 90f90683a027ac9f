"""Options that commands share, so that each reads the same everywhere."""

from pathlib import Path
from typing import Annotated

import typer

DEFAULT_JOB = "live_metrics"

HomeOption = Annotated[
    Path | None,
    typer.Option("--home", help="Where everything is kept; else $TIDEMARK_HOME, else .tidemark in the checkout."),
]
JobOption = Annotated[str, typer.Option("--job", help="The job this is about.")]
SpecOption = Annotated[
    Path | None, typer.Option("--spec", help="A spec file in place of include/job_specs/<job>.yaml.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON in place of text.")]
