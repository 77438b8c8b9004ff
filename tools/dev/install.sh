#!/bin/sh
# Creates .venv and installs mmclca into it with the dependencies of tests and
# demo. Run by `make install`. Environment variables:
#   PYTHON    interpreter (default: the first suitable one)
#   DISK_GB   required free disk space in GB (default: 10, mostly CUDA libraries)
#   VENV      folder of the environment (default: .venv)
#   VERSIONS  tested: requirements/tested.txt; oldest: requirements/oldest.txt;
#             torch28: newest versions for PyTorch 2.8 (requirements/torch28.txt);
#             locked: the tested versions, with hashes of all files;
#             latest: newest versions that pyproject.toml allows (default: the
#             versions of an existing VENV, else tested)
#   TORCH_INDEX  additional package index, such as that of PyTorch's CPU wheels
set -eu
cd "$(dirname "$0")/../.."

VENV=${VENV:-.venv}
READY=$VENV/mmclca-ready      # holds the key of the finished installation
STARTED=$VENV/mmclca-started  # there while an installation is under way
CHOSEN=$VENV/mmclca-versions  # which VERSIONS it was made with
FETCH=tools/dev/fetch_web_runtime.py
DISK_GB=${DISK_GB:-10}
[ -n "${VERSIONS:-}" ] || VERSIONS=$(cat "$CHOSEN" 2>/dev/null || echo tested)

say() { printf '%s\n' "== $*"; }
die() { printf '%s\n' "install: $*" >&2; exit 1; }

# Changes with the place and with whatever decides what gets installed.
key() {
    { pwd; echo "$VERSIONS"; cat setup.py pyproject.toml "$0" "$FETCH" \
        requirements/*; } | cksum
}

# The oldest versions of OpenMMLab are those of upstream.
extras() {
    case $VERSIONS in
    oldest) echo test,openmmlab ;;
    *) echo dev,onedl ;;
    esac
}

# What limits pip to the versions asked for, as its options.
limits() {
    case $VERSIONS in
    tested | oldest | torch28) echo "-c requirements/$VERSIONS.txt" ;;
    latest) echo '--upgrade --upgrade-strategy eager' ;;
    locked) ;;
    *) die "VERSIONS=$VERSIONS: expected tested, oldest, torch28, latest or locked" ;;
    esac
}

# The oldest versions have no wheels for Python 3.13.
is_suitable() {
    "$1" -c 'import sys; oldest = sys.argv[1] == "oldest"
version = sys.version_info
sys.exit(version < (3, 10) or oldest and version >= (3, 13))' \
        "$VERSIONS" 2>/dev/null
}

makes_venvs() { "$1" -c 'import ensurepip, venv' 2>/dev/null; }

no_venv_module() {
    die "$1 cannot create environments: module venv or ensurepip is missing.
On Debian and Ubuntu: sudo apt install python3-venv
Or use another interpreter: make install PYTHON=/path/to/python3"
}

find_python() {
    if [ -n "${PYTHON:-}" ]; then
        is_suitable "$PYTHON" ||
            die "PYTHON=$PYTHON is not a working Python 3.10 or newer (to 3.12 for VERSIONS=oldest)."
        makes_venvs "$PYTHON" || no_venv_module "$PYTHON"
        return
    fi
    without_venv=
    for PYTHON in python3 python3.13 python3.12 python3.11 python3.10 \
        python3.14 python; do
        is_suitable "$PYTHON" || continue
        makes_venvs "$PYTHON" && return
        without_venv=${without_venv:-$PYTHON}
    done
    [ -z "$without_venv" ] || no_venv_module "$without_venv"
    die "Python 3.10 or newer not found.
Install it (https://www.python.org/downloads/, apt, brew, conda), or give its
path: make install PYTHON=/path/to/python3"
}

check_disk() {
    # the column before the percentage, whatever stands in front of it
    free=$(df -Pk . | awk 'END { for (i = 2; i <= NF; i++)
        if ($i ~ /%$/) { print int($(i - 1) / 1048576); exit } }')
    [ "$free" -ge "$DISK_GB" ] ||
        die "not enough disk space in $(pwd): $free GB free, $DISK_GB GB needed.
Free some space. If PyTorch comes without CUDA libraries (macOS), 4 GB are
enough: make install DISK_GB=4"
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
        die "$VENV/bin/python does not run, and this script did not create it.
Move or repair $VENV."
    fi
}

make_venv() {
    find_python
    check_disk
    say "creating $VENV with $PYTHON ($("$PYTHON" -V 2>&1))"
    mkdir "$VENV"
    : >"$STARTED"
    "$PYTHON" -m venv "$VENV"
}

install_limited() {
    "$VENV/bin/python" -m pip install 'pip>=23'
    # shellcheck disable=SC2086 # options are words
    "$VENV/bin/python" -m pip install $limits \
        ${TORCH_INDEX:+--extra-index-url "$TORCH_INDEX"} -e ".[$(extras)]"
}

# Installs the requirements of the lock whose names match a pattern, or not.
install_hashed() { # PATTERN SIGN
    awk -v pattern="^($1)" -v sign="$2" '/^[a-z]/ {
        keep = ($0 ~ pattern) == (sign == "+") } keep' \
        requirements/locked.txt >"$VENV/tmp/locked.txt"
    "$VENV/bin/python" -m pip install --require-hashes --no-deps \
        --no-build-isolation --use-pep517 -r "$VENV/tmp/locked.txt"
}

# Source packages are built by the setuptools of the lock, which comes first.
# A TORCH_INDEX has other files than PyPI: its PyTorch comes without hashes.
install_locked() {
    install_hashed 'setuptools=' +
    if [ -z "${TORCH_INDEX:-}" ]; then
        install_hashed 'setuptools=' -
    else
        install_hashed 'setuptools=|torch|nvidia|cuda|triton' -
        "$VENV/bin/python" -m pip install -c requirements/tested.txt \
            --extra-index-url "$TORCH_INDEX" torch torchvision
    fi
    "$VENV/bin/python" -m pip install --no-deps --no-build-isolation -e .
}

# An environment made by hand gets no mark: it is filled and never removed.
install_packages() {
    say "installing mmclca and its dependencies into $VENV (a few minutes; versions: $VERSIONS)"
    [ ! -e "$READY" ] || mv "$READY" "$STARTED"
    mkdir -p "$VENV/tmp"
    TMPDIR=$(pwd)/$VENV/tmp # on the disk that was checked
    export TMPDIR
    case $VERSIONS in
    locked) install_locked ;;
    *) install_limited ;;
    esac
    "$VENV/bin/python" "$FETCH" || say "all but export --web will work"
    rm -rf "$VENV/tmp"
    echo "$VERSIONS" >"$CHOSEN"
    if made_here; then
        key >"$STARTED"
        mv "$STARTED" "$READY"
    fi
}

limits=$(limits)
if is_up_to_date; then
    say "$VENV is up to date; activate it with: source $VENV/bin/activate"
    exit 0
fi
[ ! -d "$VENV" ] || drop_if_broken
[ -d "$VENV" ] || make_venv
install_packages
say "$VENV is ready; activate it with: source $VENV/bin/activate"
