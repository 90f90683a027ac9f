#!/bin/sh
# Brings everything that Tidemark runs with: uv into .tools, packages into .venv, jars into jars.
# What is done already is left alone, what was interrupted is done again.
set -eu
cd "$(dirname "$0")/.."

UV_VERSION=0.13.8
export UV_SYSTEM_CERTS="${UV_SYSTEM_CERTS:-1}" # certificates of the machine: a company may add its own
export UV_PYTHON_DOWNLOADS=never UV_PROJECT_ENVIRONMENT=.venv
unset VIRTUAL_ENV PYTHONHOME PYTHONPATH

fail() {
    echo "setup: $1" >&2
    exit 1
}

suits() {
    "$1" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] < (3, 13))' 2>/dev/null
}

find_python() {
    if [ -n "${PYTHON:-}" ]; then
        suits "$PYTHON" || fail "PYTHON=$PYTHON is not Python 3.11 or 3.12: name one that is, or leave PYTHON unset"
        found=$PYTHON
    else
        found=
        for candidate in python3 python3.12 python3.11; do
            if suits "$candidate"; then
                found=$candidate
                break
            fi
        done
        [ -n "$found" ] || fail "Python 3.11 or 3.12 is needed, found $(python3 --version 2>/dev/null || echo none): apt-get install python3.11 python3.11-venv, or make setup PYTHON=/path/to/python3.11"
    fi
    # Inside a virtual environment, perhaps our own: the Python below it outlives it.
    python=$("$found" -c 'import sys; print(sys._base_executable or sys.executable)')
    "$python" -c 'import ensurepip, venv' 2>/dev/null ||
        fail "$python cannot make virtual environments: apt-get install $("$python" -c 'import sys; print("python%d.%d-venv" % sys.version_info[:2])')"
}

find_java() {
    if [ -n "${JAVA_HOME:-}" ]; then java="$JAVA_HOME/bin/java"; else java=java; fi
    version=$("$java" -version 2>&1 | sed -n 's/.*version "\(1\.\)\{0,1\}\([0-9][0-9]*\).*/\2/p' | head -n 1) || version=
    [ "${version:-0}" -ge 17 ] ||
        fail "Java 17 or newer is needed, found ${version:-none}${JAVA_HOME:+ in JAVA_HOME=$JAVA_HOME}: apt-get install openjdk-17-jre-headless (macOS: brew install openjdk@17)"
}

bring_uv() {
    [ "$(.tools/bin/uv --version 2>/dev/null | cut -d ' ' -f 2)" = "$UV_VERSION" ] && return
    echo "setup: uv $UV_VERSION into .tools"
    rm -rf .tools
    "$python" -m venv .tools && .tools/bin/python -m pip install --quiet --disable-pip-version-check "uv==$UV_VERSION" ||
        fail "uv could not be installed: see the lines above, then run make setup again"
}

# What the packages depend on, and the place: scripts in .venv name it in full.
wanted_packages() {
    pwd
    cat pyproject.toml uv.lock
}

bring_packages() {
    wanted_packages | cmp -s - .venv/.wanted && .venv/bin/python -c '' 2>/dev/null && return
    echo "setup: packages into .venv"
    if [ -e .tools/unfinished ] || { [ -e .venv/.wanted ] && [ "$(head -n 1 .venv/.wanted)" != "$(pwd)" ]; }; then
        rm -rf .venv
    fi
    touch .tools/unfinished
    .tools/bin/uv sync --quiet --frozen --python "$python" ||
        fail "packages could not be installed: see the lines above, then run make setup again"
    wanted_packages >.venv/.wanted
    rm .tools/unfinished
}

bring_jars() {
    cmp -s ivy.xml jars/.wanted && return
    echo "setup: jars into jars"
    rm -rf .tools/jars
    set -- .venv/lib/python3.*/site-packages/pyspark/jars/ivy-*.jar
    "$java" -jar "$1" -ivy ivy.xml -confs spark broker \
        -retrieve ".tools/jars/[conf]/[artifact]-[revision].[ext]" >.tools/ivy.log 2>&1 || {
        tail -n 20 .tools/ivy.log >&2
        fail "jars could not be retrieved: see the lines above, then run make setup again"
    }
    cp ivy.xml .tools/jars/.wanted
    rm -rf jars
    mv .tools/jars jars
}

# An archive of loaded classes makes every start of a driver quicker; where it cannot be made, starts are as before.
bring_classes() {
    [ -e jars/classes.jsa ] && [ ! .venv/.wanted -nt jars/classes.jsa ] && return
    case "$(pwd)" in *" "*) return ;; esac
    echo "setup: classes into jars"
    rm -f jars/classes.jsa
    .venv/bin/python scripts/archive_classes.py "$(pwd)/jars/classes.jsa" >.tools/classes.log 2>&1 ||
        echo "setup: no archive of classes, starts take longer: see .tools/classes.log"
}

find_python
find_java
bring_uv
bring_packages
bring_jars
bring_classes
