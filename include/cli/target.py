"""Where a command that feeds a job puts its files."""

from pathlib import Path
from typing import NamedTuple

from include.errors import UsageError
from include.settings import load_spec, resolve_home, source_path
from spark_jobs.settings import FilesSource


class Target(NamedTuple):
    """The first source of a job that reads files, and its landing directory."""

    home: Path
    source: FilesSource
    directory: Path


def landing_target(job: str, spec: Path | None, home: Path | None) -> Target:
    resolved = resolve_home(home)
    for source in load_spec(job, spec).source:
        if isinstance(source, FilesSource):
            return Target(resolved, source, source_path(resolved, source))
    raise UsageError(f"job {job!r} reads no files; its spec needs a source of kind files")
