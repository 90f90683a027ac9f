"""Where things lie: the home, the specs, and the directories that a spec names."""

import os
from pathlib import Path

import yaml
from pydantic import ValidationError

from include.errors import UsageError
from spark_jobs.settings import FilesSource, JobSpec

PROJECT = Path(__file__).resolve().parents[1]
JOB_SPECS = PROJECT / "include" / "job_specs"


def resolve_home(home: Path | None = None) -> Path:
    """`--home`, else `$TIDEMARK_HOME`, else `.tidemark/` in the checkout; always absolute."""
    chosen = home or Path(os.environ.get("TIDEMARK_HOME") or PROJECT / ".tidemark")
    resolved = chosen.expanduser().resolve()
    if resolved.exists() and not resolved.is_dir():
        raise UsageError(f"the home {resolved} is a file; choose a directory with --home")
    return resolved


def spec_path(job: str, spec: Path | None = None) -> Path:
    return spec.expanduser().resolve() if spec else JOB_SPECS / f"{job}.yaml"


def load_spec(job: str, spec: Path | None = None) -> JobSpec:
    """The spec of `job`; every error names the file and the path of the field."""
    path = spec_path(job, spec)
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        known = ", ".join(sorted(file.stem for file in JOB_SPECS.glob("*.yaml")))
        raise UsageError(f"no spec at {path}; known jobs: {known}; or name a file with --spec") from None
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read the spec {path}: {error}") from None
    try:
        written = yaml.safe_load(text)
        loaded = JobSpec.model_validate(written)
    except yaml.YAMLError as error:
        raise UsageError(f"{path} is not YAML: {' '.join(str(error).split())}") from None
    except ValidationError as error:
        several = isinstance(written, dict) and isinstance(written.get("source"), list)
        raise UsageError(f"{path}: {_explain(error, several)}") from None
    if loaded.job != job:
        raise UsageError(f"{path} is the spec of job {loaded.job!r}, not of {job!r}")
    return loaded


def _explain(error: ValidationError, several_sources: bool) -> str:
    """All errors on one line, each as `field.path: what is wrong`."""
    return "; ".join(
        f"{_field(item['loc'], several_sources)}: {_message(item['msg'], item.get('input'))}" for item in error.errors()
    )


def _field(location: tuple[int | str, ...], several_sources: bool) -> str:
    """The path as it stands in the file: a lone source has no number, and a kind of source is no key."""
    if location[:1] == ("source",) and len(location) > 1:
        number, rest = location[1], location[2:]
        source = f"source[{number}]" if several_sources else "source"
        location = (source, *(rest[1:] if rest[:1] in (("files",), ("socket",)) else rest))
    return ".".join(str(part) for part in location) or "spec"


def _message(message: str, value: object) -> str:
    text = message.removeprefix("Value error, ")
    if text == "Extra inputs are not permitted":
        return "unknown key"
    return f"{text} (found {value!r})" if isinstance(value, str | int | float) and repr(value) not in text else text


def source_path(home: Path, source: FilesSource) -> Path:
    """The directory that the source reads: absolute, or inside the home."""
    path = Path(source.path).expanduser()
    if path.is_absolute():
        return path
    inside = (home / path).resolve()
    if not inside.is_relative_to(home):
        raise UsageError(f"source.path {source.path!r} leaves the home {home}; make it absolute if that is meant")
    return inside
