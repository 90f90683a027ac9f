"""`make setup` on a machine that lacks something: one line with the remedy, before anything is changed."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from include.settings import PROJECT


def setup(**environ: str) -> subprocess.CompletedProcess[str]:
    """Each call here ends before the first step that writes."""
    command = ["sh", str(PROJECT / "scripts" / "setup.sh")]
    return subprocess.run(command, env=os.environ | environ, capture_output=True, text=True, check=False)


def fake(path: Path, script: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


def assert_one_line(done: subprocess.CompletedProcess[str], *parts: str) -> None:
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert all(part in done.stderr for part in parts), done.stderr


@pytest.mark.parametrize(("version", "found"), [("1.8.0_402", "found 8"), ("11.0.2", "found 11")])
def test_old_java_is_one_line_with_the_remedy(tmp_path: Path, version: str, found: str) -> None:
    fake(tmp_path / "bin" / "java", f"echo 'openjdk version \"{version}\"' >&2")
    done = setup(PYTHON=sys.executable, JAVA_HOME=str(tmp_path))
    assert_one_line(done, found, "apt-get install openjdk-17-jre-headless")


def test_missing_java_is_one_line_with_the_remedy(tmp_path: Path) -> None:
    done = setup(PYTHON=sys.executable, JAVA_HOME=str(tmp_path / "nowhere"))
    assert_one_line(done, "found none", "apt-get install openjdk-17-jre-headless")


def test_chosen_python_that_does_not_fit_is_named(tmp_path: Path) -> None:
    old = fake(tmp_path / "python3.9", "exit 1")
    assert_one_line(setup(PYTHON=str(old)), str(old), "is not Python 3.11 or 3.12")


def test_machine_without_a_fitting_python_is_told_what_to_install(tmp_path: Path) -> None:
    for name in ("python3", "python3.11", "python3.12"):
        fake(tmp_path / name, '[ "$1" = --version ] && echo Python 3.9.2 && exit 0; exit 1')
    done = setup(PYTHON="", PATH=f"{tmp_path}:{os.environ['PATH']}")
    assert_one_line(done, "found Python 3.9.2", "apt-get install python3.11 python3.11-venv")
