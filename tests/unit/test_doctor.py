"""`tidemark doctor`: every lack is found, with the command that helps."""

import json
import socket
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from include.cli import machine
from include.cli.checks import (
    GIB,
    Check,
    Health,
    check_disk,
    check_home,
    check_jars,
    check_java,
    check_locale,
    check_memory,
    check_port,
    check_pyspark,
    check_python,
    java_major,
    listed_jars,
)
from include.cli.doctor import doctor
from include.settings import PROJECT

HOME = Path("/some/home")
IVY = """<ivy-module version="2.0">
  <configurations><conf name="spark"/><conf name="broker"/></configurations>
  <dependencies>
    <dependency org="o" name="a_2.13" rev="1.0" conf="spark->master"/>
    <dependency org="o" name="b" rev="2.0" conf="broker->default"/>
  </dependencies>
</ivy-module>"""


def assert_helps(check: Check, health: Health, found: str, remedy: str) -> None:
    assert check.health is health
    assert found in check.found
    assert remedy in (check.remedy or "")


@pytest.mark.parametrize("version", [(3, 11, 0), (3, 12, 9)])
def test_python_that_fits_is_ok(version: tuple[int, ...]) -> None:
    assert check_python(version) == Check("Python", Health.OK, ".".join(map(str, version)))


@pytest.mark.parametrize("version", [(3, 10, 14), (3, 13, 0), (4, 0, 0)])
def test_python_that_does_not_fit_is_a_problem(version: tuple[int, ...]) -> None:
    assert_helps(check_python(version), Health.PROBLEM, "3.11 or 3.12 is needed", "apt-get install python3.11")


@pytest.mark.parametrize(
    ("text", "major"),
    [
        ('openjdk version "17.0.15" 2025-04-15', 17),
        ('java version "1.8.0_402"', 8),
        ('openjdk version "25" 2025-09-16', 25),
        ('openjdk version "26-ea" 2026-03-17', 26),
        ("The operation couldn't be completed. Unable to locate a Java Runtime.", None),
    ],
)
def test_java_tells_its_version_in_several_ways(text: str, major: int | None) -> None:
    assert java_major(text) == major


def test_java_that_is_new_enough_is_ok() -> None:
    assert check_java("/bin/java", lambda _: 'openjdk version "17.0.1"').health is Health.OK


def test_missing_old_and_broken_java_are_problems_with_the_install_command() -> None:
    install = "apt-get install openjdk-17-jre-headless"
    assert_helps(check_java(None, lambda _: ""), Health.PROBLEM, "neither JAVA_HOME nor PATH", install)
    assert_helps(check_java("/x/java", lambda _: None), Health.PROBLEM, "/x/java cannot be run", install)
    assert_helps(check_java("/x/java", lambda _: "?"), Health.PROBLEM, "does not tell its version", install)
    assert_helps(check_java("/x/java", lambda _: 'version "11.0.2"'), Health.PROBLEM, "is version 11", install)


def test_java_home_comes_before_the_path() -> None:
    assert machine.java_command({"JAVA_HOME": "/opt/java", "PATH": "/bin"}) == "/opt/java/bin/java"


def test_java_on_the_path_is_found(tmp_path: Path) -> None:
    java = tmp_path / "java"
    java.write_text("#!/bin/sh\necho 'openjdk version \"21.0.1\"' >&2\n")
    java.chmod(0o755)
    assert machine.java_command({"PATH": str(tmp_path)}) == str(java)
    assert java_major(machine.java_version(str(java)) or "") == 21


def test_java_that_is_not_there_has_no_version() -> None:
    assert machine.java_version("/nowhere/bin/java") is None
    assert machine.java_command({"PATH": "/nowhere"}) is None


def test_unequal_pyspark_and_client_are_a_problem() -> None:
    assert check_pyspark("4.2.0", "4.2.0").health is Health.OK
    assert_helps(check_pyspark("4.2.0", "4.1.0"), Health.PROBLEM, "pyspark-client 4.1.0", "make setup")
    assert_helps(check_pyspark("4.2.0", None), Health.PROBLEM, "pyspark-client missing", "make setup")
    assert check_pyspark(None, None).health is Health.PROBLEM


def test_jars_are_listed_by_configuration() -> None:
    assert listed_jars(IVY) == {"spark": ["a_2.13-1.0.jar"], "broker": ["b-2.0.jar"]}


def test_own_ivy_file_names_jars_for_spark_and_broker() -> None:
    jars = listed_jars((PROJECT / "ivy.xml").read_text())
    assert set(jars) == {"spark", "broker"}
    assert all(jars.values())


def test_missing_jar_is_a_problem_and_others_do_no_harm() -> None:
    assert check_jars("spark", ["a.jar"], {"a.jar", "more.jar"}).health is Health.OK
    assert_helps(check_jars("spark", ["a.jar", "b.jar"], {"a.jar"}), Health.PROBLEM, "missing: b.jar", "make setup")


def test_jars_that_are_no_longer_listed_are_not_taken_for_others(tmp_path: Path) -> None:
    (tmp_path / "a-1.jar").touch()
    (tmp_path / "a-1.jar.part").touch()
    assert machine.jars_in(tmp_path) == {"a-1.jar"}
    assert machine.jars_in(tmp_path / "missing") == set()


def test_home_that_cannot_be_written_is_a_problem() -> None:
    assert check_home(HOME, True).health is Health.OK
    assert_helps(check_home(HOME, False), Health.PROBLEM, "cannot be written", "TIDEMARK_HOME")


def test_home_that_does_not_exist_yet_is_judged_by_the_directory_above(tmp_path: Path) -> None:
    assert machine.is_writable(tmp_path / "not" / "yet")
    assert machine.free_bytes(tmp_path / "not" / "yet") > 0
    (tmp_path / "file").touch()
    assert not machine.is_writable(tmp_path / "file" / "home")


def test_little_disk_is_a_problem_and_little_memory_a_warning() -> None:
    assert check_disk(HOME, 2 * GIB).health is Health.OK
    assert_helps(check_disk(HOME, 2 * GIB - 1), Health.PROBLEM, "2 GiB are needed", "another disk")
    assert check_memory(4 * GIB).health is Health.OK
    assert_helps(check_memory(3 * GIB), Health.WARNING, "3.0 GiB", "driver_memory")


def test_limit_of_a_container_counts_as_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "CGROUP_LIMIT", tmp_path / "memory.max")
    unlimited = machine.memory_bytes()
    (tmp_path / "memory.max").write_text("max\n")
    assert machine.memory_bytes() == unlimited > 1000
    (tmp_path / "memory.max").write_text("1000\n")
    assert machine.memory_bytes() == 1000


def test_port_in_use_is_only_a_warning() -> None:
    assert check_port("Airflow", 8080, True).health is Health.OK
    assert_helps(check_port("Airflow", 8080, False), Health.WARNING, "in use", "8080")


def test_port_is_taken_while_somebody_listens() -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
        assert machine.is_port_free(port)
        listener.listen()
        assert not machine.is_port_free(port)


@pytest.mark.parametrize("environ", [{"LANG": "de_DE.utf8"}, {"LC_ALL": "C.UTF-8", "LANG": "C"}, {"LC_CTYPE": "UTF-8"}])
def test_locale_with_utf_8_is_ok(environ: dict[str, str]) -> None:
    assert check_locale(environ).health is Health.OK


@pytest.mark.parametrize("environ", [{}, {"LANG": "C"}, {"LC_ALL": "POSIX", "LANG": "en_US.UTF-8"}])
def test_locale_without_utf_8_is_a_problem(environ: dict[str, str]) -> None:
    assert_helps(check_locale(environ), Health.PROBLEM, "garbled", "export LC_ALL=C.UTF-8")


def run_doctor(home: Path) -> tuple[int, dict[str, dict[str, str]]]:
    app = typer.Typer()
    app.command()(doctor)
    result = CliRunner().invoke(app, ["--home", str(home), "--json"], catch_exceptions=False)
    return result.exit_code, {check["name"]: check for check in json.loads(result.stdout)["checks"]}


def test_doctor_exits_1_for_a_problem(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "java_command", lambda environ: None)
    code, checks = run_doctor(tmp_path)
    assert code == 1
    assert checks["Java"]["health"] == "problem"


def test_doctor_exits_0_for_a_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "is_port_free", lambda port: False)
    monkeypatch.setattr(machine, "java_version", lambda command: 'openjdk version "17.0.1"')
    monkeypatch.setattr(machine, "java_command", lambda environ: "/bin/java")
    monkeypatch.setattr(machine, "jars_in", lambda directory: AnyJar())
    monkeypatch.setattr(machine, "free_bytes", lambda home: 3 * GIB)
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    code, checks = run_doctor(tmp_path)
    assert code == 0
    assert checks["port 8080"]["health"] == "warning"


class AnyJar(set[str]):
    """A directory that has whatever is asked for."""

    def __contains__(self, jar: object) -> bool:
        return True
