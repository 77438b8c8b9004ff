#!/bin/sh
# Makes .venv and installs mmclca into it with all that tests and demo need.
# Run by `make install`. Settings from the environment:
#   PYTHON    the interpreter to build on (default: the first that fits)
#   DISK_GB   free gigabytes to ask for (default: 10, most of it CUDA libraries)
#   VENV      the folder of the environment (default: .venv)
#   VERSIONS  tested: those of requirements/tested.txt; oldest: of oldest.txt;
#             latest: the newest that pyproject.toml allows (default: those
#             that VENV was made with, else tested)
set -eu
cd "$(dirname "$0")/../.."

VENV=${VENV:-.venv}
READY=$VENV/mmclca-ready      # holds the key of the finished installation
STARTED=$VENV/mmclca-started  # there while an installation is under way
CHOSEN=$VENV/mmclca-versions  # which VERSIONS it was made with
DISK_GB=${DISK_GB:-10}
[ -n "${VERSIONS:-}" ] || VERSIONS=$(cat "$CHOSEN" 2>/dev/null || echo tested)

say() { printf '%s\n' "== $*"; }
die() { printf '%s\n' "install: $*" >&2; exit 1; }

# Changes with the place and with whatever decides what gets installed.
key() {
    { pwd; echo "$VERSIONS"; cat setup.py pyproject.toml "$0" requirements/*; } |
        cksum
}

# What limits pip to the versions asked for, as its options.
limits() {
    case $VERSIONS in
    tested | oldest) echo "-c requirements/$VERSIONS.txt" ;;
    latest) echo '--upgrade --upgrade-strategy eager' ;;
    *) die "VERSIONS=$VERSIONS is not allowed: tested, oldest or latest" ;;
    esac
}

is_new_enough() {
    "$1" -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null
}

makes_venvs() { "$1" -c 'import ensurepip, venv' 2>/dev/null; }

no_venv_module() {
    die "$1 cannot make environments: its venv or ensurepip module is missing.
On Debian and Ubuntu: sudo apt install python3-venv
Or name another interpreter: make install PYTHON=/path/to/python3"
}

find_python() {
    if [ -n "${PYTHON:-}" ]; then
        is_new_enough "$PYTHON" ||
            die "PYTHON=$PYTHON is no Python >= 3.10 that runs."
        makes_venvs "$PYTHON" || no_venv_module "$PYTHON"
        return
    fi
    without_venv=
    for PYTHON in python3 python3.13 python3.12 python3.11 python3.10 \
        python3.14 python; do
        is_new_enough "$PYTHON" || continue
        makes_venvs "$PYTHON" && return
        without_venv=${without_venv:-$PYTHON}
    done
    [ -z "$without_venv" ] || no_venv_module "$without_venv"
    die "no Python >= 3.10 found.
Install one (https://www.python.org/downloads/, apt, brew, conda), or name it:
make install PYTHON=/path/to/python3"
}

check_disk() {
    # the column before the percentage, whatever stands in front of it
    free=$(df -Pk . | awk 'END { for (i = 2; i <= NF; i++)
        if ($i ~ /%$/) { print int($(i - 1) / 1048576); exit } }')
    [ "$free" -ge "$DISK_GB" ] ||
        die "$free GB are free in $(pwd), about $DISK_GB GB are needed.
Make room, or, where torch comes without CUDA libraries (macOS), ask for less:
make install DISK_GB=4"
}

made_here() { [ -e "$READY" ] || [ -e "$STARTED" ]; }

runs() { "$VENV/bin/python" -c '' 2>/dev/null; }

is_up_to_date() { runs && [ "$(cat "$READY" 2>/dev/null)" = "$(key)" ]; }

# An interrupted pip may leave half a package that it later takes for whole,
# so an environment that was made here and not finished is made anew.
drop_if_broken() {
    if made_here && { [ -e "$STARTED" ] || ! runs; }; then
        say "removing an unfinished or broken $VENV"
        rm -rf "$VENV"
    elif ! runs; then
        die "$VENV has no bin/python that runs, and was not made here.
Move it away or repair it."
    fi
}

make_venv() {
    find_python
    check_disk
    say "making $VENV with $PYTHON ($("$PYTHON" -V 2>&1))"
    mkdir "$VENV"
    : >"$STARTED"
    "$PYTHON" -m venv "$VENV"
}

# An environment made by hand gets no mark: it is filled and never removed.
install_packages() {
    say "installing mmclca and its dependencies into $VENV (some minutes; versions: $VERSIONS)"
    [ ! -e "$READY" ] || mv "$READY" "$STARTED"
    mkdir -p "$VENV/tmp"
    TMPDIR=$(pwd)/$VENV/tmp # on the disk that was checked
    export TMPDIR
    "$VENV/bin/python" -m pip install 'pip>=23'
    # shellcheck disable=SC2086 # options are words
    "$VENV/bin/python" -m pip install $limits -e '.[dev]'
    rm -rf "$VENV/tmp"
    echo "$VERSIONS" >"$CHOSEN"
    if made_here; then
        key >"$STARTED"
        mv "$STARTED" "$READY"
    fi
}

limits=$(limits)
if is_up_to_date; then
    say "$VENV is up to date; in this terminal: source $VENV/bin/activate"
    exit 0
fi
[ ! -d "$VENV" ] || drop_if_broken
[ -d "$VENV" ] || make_venv
install_packages
say "$VENV is ready; in this terminal: source $VENV/bin/activate"
