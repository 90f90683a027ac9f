"""The machine and the versions that a measurement was taken with."""

import os
import platform
import re
import subprocess
from importlib.metadata import version
from pathlib import Path

from benchmarks.engines.flink import VERSION as FLINK_VERSION

PACKAGES = ("pyspark", "delta-spark", "deltalake", "duckdb", "pyarrow", "datasketches")


def describe_machine() -> dict[str, str]:
    """What to know when comparing with another machine, by name."""
    return {
        "cores": f"{len(os.sched_getaffinity(0))} ({_processor()})",
        "memory": f"{os.sysconf('SC_PHYS_PAGES') * os.sysconf('SC_PAGE_SIZE') / 2**30:.0f} GiB",
        "system": f"{platform.system()} {platform.release()}",
        "Python": platform.python_version(),
        "Java": _java_version(),
        **{package: version(package) for package in PACKAGES},
        "apache-flink": FLINK_VERSION,
    }


def _processor() -> str:
    found = re.search(r"^model name\s*:\s*(.+)$", Path("/proc/cpuinfo").read_text(encoding="utf-8"), re.MULTILINE)
    return found[1] if found else platform.machine()


def _java_version() -> str:
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home) / "bin" / "java") if home else "java"
    told = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    found = re.search(r'version "([^"]+)"', told)
    return found[1] if found else "unknown"
