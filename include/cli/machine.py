"""A look at the machine: the facts that checks judge."""

import os
import shutil
import socket
import subprocess
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

CGROUP_LIMIT = Path("/sys/fs/cgroup/memory.max")


def java_command(environ: Mapping[str, str]) -> str | None:
    """The java that Spark would run: that of JAVA_HOME, else the first on PATH."""
    if home := environ.get("JAVA_HOME"):
        return str(Path(home) / "bin" / "java")
    return shutil.which("java", path=environ.get("PATH"))


def java_version(command: str) -> str | None:
    try:
        done = subprocess.run([command, "-version"], capture_output=True, text=True, timeout=60, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stderr + done.stdout


def package_version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def jars_in(directory: Path) -> set[str]:
    return {jar.name for jar in directory.glob("*.jar")}


def existing(path: Path) -> Path:
    """`path`, or the nearest directory above it that is there."""
    return next(place for place in (path, *path.parents) if place.exists())


def is_writable(home: Path) -> bool:
    return os.access(existing(home), os.W_OK | os.X_OK)


def free_bytes(home: Path) -> int:
    return shutil.disk_usage(existing(home)).free


def memory_bytes() -> int:
    """Of the machine, or of the container where that is less."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    limit = CGROUP_LIMIT.read_text().strip() if CGROUP_LIMIT.exists() else "max"
    return min(total, int(limit)) if limit.isdigit() else total


def is_port_free(port: int) -> bool:
    """Whether nobody answers there on the loopback address."""
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex(("127.0.0.1", port)) != 0
