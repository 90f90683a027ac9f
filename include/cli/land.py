"""`tidemark land`: the safe way for a file to reach a job."""

from pathlib import Path
from typing import Annotated

import typer

from include.cli.options import DEFAULT_JOB, HomeOption, JobOption, JsonOption, SpecOption
from include.cli.output import emit
from include.cli.progress import ProgressLine
from include.cli.target import landing_target
from include.errors import UsageError
from include.producer.landing import land as land_files


def land(
    files: Annotated[list[Path], typer.Argument(help="Plain or gzip files, landed in this order.", show_default=False)],
    job: JobOption = DEFAULT_JOB,
    spec: SpecOption = None,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Copy files into a job's landing directory, whole and in order: all of them or none."""
    directory = landing_target(job, spec, home).directory
    copied: list[Path] = []
    with ProgressLine() as progress:

        def report(file: Path) -> None:
            copied.append(file)
            progress.show(f"copied {len(copied)} of {len(files)} files")

        try:
            landed = land_files(files, directory, report)
        except OSError as error:
            raise UsageError(f"cannot land in {directory}: {error}") from None
    rows = [{"source": str(file.source), "landed": str(file.path), "bytes": file.bytes} for file in landed]
    emit(
        {"job": job, "directory": str(directory), "files": rows},
        as_json,
        "\n".join(f"{file.source} -> {file.path}" for file in landed),
    )
