"""`tidemark doctor`: what this machine lacks, and the command that brings it."""

import os
import sys

import typer

from include.cli import machine
from include.cli.checks import (
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
    listed_jars,
)
from include.cli.options import HomeOption, JsonOption
from include.cli.output import emit
from include.settings import PROJECT, resolve_home

PORTS = {"Airflow": 8080, "broker": 9092}


def doctor(home: HomeOption = None, as_json: JsonOption = False) -> None:
    """Check Python, Java, jars, home, disk, memory, ports and locale; exit 1 if something has to be put right."""
    resolved = resolve_home(home)
    jars = listed_jars((PROJECT / "ivy.xml").read_text(encoding="utf-8"))
    checks = [
        check_python(sys.version_info[:3]),
        check_java(machine.java_command(os.environ), machine.java_version),
        check_pyspark(machine.package_version("pyspark"), machine.package_version("pyspark-client")),
        *(check_jars(conf, names, machine.jars_in(PROJECT / "jars" / conf)) for conf, names in jars.items()),
        check_home(resolved, machine.is_writable(resolved)),
        check_disk(resolved, machine.free_bytes(resolved)),
        check_memory(machine.memory_bytes()),
        *(check_port(user, port, machine.is_port_free(port)) for user, port in PORTS.items()),
        check_locale(os.environ),
    ]
    healthy = all(check.health is not Health.PROBLEM for check in checks)
    emit({"ok": healthy, "checks": [check._asdict() for check in checks]}, as_json, "\n".join(map(in_words, checks)))
    if not healthy:
        raise typer.Exit(1)


def in_words(check: Check) -> str:
    line = f"{check.health:<8} {check.name}: {check.found}"
    return f"{line}\n{'':8} -> {check.remedy}" if check.remedy else line
