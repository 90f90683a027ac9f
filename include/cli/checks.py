"""What a machine needs: each check is told what was found, and answers how good it is and what to do."""

import re
from collections.abc import Callable, Mapping
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

GIB = 1 << 30
MIN_DISK = 2 * GIB
MIN_MEMORY = 4 * GIB
MIN_JAVA = 17
SETUP = "run: make setup"
INSTALL_JAVA = "install Java 17 or newer: apt-get install openjdk-17-jre-headless (macOS: brew install openjdk@17)"


class Health(StrEnum):
    OK = "ok"
    WARNING = "warning"  # works, but part of it may not
    PROBLEM = "problem"  # has to be put right first


class Check(NamedTuple):
    name: str
    health: Health
    found: str
    remedy: str | None = None


def check_python(found: tuple[int, ...]) -> Check:
    text = ".".join(map(str, found))
    if (3, 11) <= found[:2] < (3, 13):
        return Check("Python", Health.OK, text)
    remedy = "install Python 3.11 or 3.12: apt-get install python3.11 python3.11-venv; then run: make setup"
    return Check("Python", Health.PROBLEM, f"{text}; 3.11 or 3.12 is needed", remedy)


def check_java(command: str | None, version_text: Callable[[str], str | None]) -> Check:
    """`version_text(command)` is what `java -version` prints, or None where it cannot be run."""
    if command is None:
        return Check("Java", Health.PROBLEM, "neither JAVA_HOME nor PATH leads to a java", INSTALL_JAVA)
    text = version_text(command)
    if text is None:
        return Check("Java", Health.PROBLEM, f"{command} cannot be run", f"correct JAVA_HOME, or {INSTALL_JAVA}")
    major = java_major(text)
    if major is None:
        return Check("Java", Health.PROBLEM, f"{command} does not tell its version", INSTALL_JAVA)
    if major < MIN_JAVA:
        found = f"{command} is version {major}; {MIN_JAVA} or newer is needed"
        return Check("Java", Health.PROBLEM, found, f"{INSTALL_JAVA}; then let JAVA_HOME lead to it")
    return Check("Java", Health.OK, f"{major} at {command}")


def java_major(version_text: str) -> int | None:
    """The 17 of `17.0.15`, and the 8 of `1.8.0_402`, as it was counted then."""
    found = re.search(r'version "(?:1\.)?(\d+)', version_text)
    return int(found[1]) if found else None


def check_pyspark(pyspark: str | None, client: str | None) -> Check:
    """Both write into the same folder: unequal versions overwrite each other."""
    if pyspark and pyspark == client:
        return Check("pyspark", Health.OK, pyspark)
    found = f"pyspark {pyspark or 'missing'}, pyspark-client {client or 'missing'}; they have to be equal"
    return Check("pyspark", Health.PROBLEM, found, f"remove .venv, then {SETUP}")


def listed_jars(ivy: str) -> dict[str, list[str]]:
    """By configuration, the jars that an ivy.xml names; what they need in turn is not among them."""
    root = ElementTree.fromstring(ivy)
    jars: dict[str, list[str]] = {conf.attrib["name"]: [] for conf in root.iter("conf")}
    for dependency in root.iter("dependency"):
        conf = dependency.attrib["conf"].partition("->")[0]
        jars[conf].append(f"{dependency.attrib['name']}-{dependency.attrib['rev']}.jar")
    return jars


def check_jars(conf: str, listed: list[str], present: set[str]) -> Check:
    name = f"jars/{conf}"
    if missing := [jar for jar in listed if jar not in present]:
        return Check(name, Health.PROBLEM, f"missing: {', '.join(missing)}", SETUP)
    return Check(name, Health.OK, f"{len(present)} jars")


def check_home(home: Path, writable: bool) -> Check:
    if writable:
        return Check("home", Health.OK, str(home))
    remedy = "choose another with --home or TIDEMARK_HOME, or make it yours: chown"
    return Check("home", Health.PROBLEM, f"{home} cannot be written to", remedy)


def check_disk(home: Path, free: int) -> Check:
    found = f"{free / GIB:.1f} GiB free under {home}"
    if free >= MIN_DISK:
        return Check("disk", Health.OK, found)
    remedy = "free some space, or choose a home on another disk with TIDEMARK_HOME"
    return Check("disk", Health.PROBLEM, f"{found}; {MIN_DISK // GIB} GiB are needed", remedy)


def check_memory(total: int) -> Check:
    found = f"{total / GIB:.1f} GiB"
    if total >= MIN_MEMORY:
        return Check("memory", Health.OK, found)
    remedy = "lower resources.driver_memory in the spec, for instance to 1g, and run one job at a time"
    return Check("memory", Health.WARNING, f"{found}; {MIN_MEMORY // GIB} GiB are advised", remedy)


def check_port(user: str, port: int, free: bool) -> Check:
    name = f"port {port}"
    if free:
        return Check(name, Health.OK, f"free for {user}")
    remedy = f"fine if {user} runs already; else see who has it: ss -ltnp 'sport = :{port}'"
    return Check(name, Health.WARNING, "in use", remedy)


def check_locale(environ: Mapping[str, str]) -> Check:
    """The first that is set of LC_ALL, LC_CTYPE and LANG decides, for Java too."""
    chosen = next((environ[key] for key in ("LC_ALL", "LC_CTYPE", "LANG") if environ.get(key)), "")
    if re.search(r"utf-?8", chosen, re.IGNORECASE):
        return Check("locale", Health.OK, chosen)
    remedy = "use one with UTF-8: export LC_ALL=C.UTF-8"
    return Check("locale", Health.PROBLEM, f"{chosen or 'none set'}; names of files would be garbled", remedy)
