#!/bin/sh
# Builds dist/ and checks it as a user would; run by `make dist`. The source
# distribution builds the wheel, twine checks both, and the wheel passes
# tools/dev/smoke_test.py in an empty environment and another folder, both of
# which are removed. Environment variables: PYTHON (default: python3),
# EXTRAS (default: all,onedl), TORCH_INDEX (additional package index).
set -eu
cd "$(dirname "$0")/../.."

PYTHON=${PYTHON:-python3}
EXTRAS=${EXTRAS:-all,onedl}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

say() { printf '%s\n' "== $*"; }

say 'build dist/'
"$PYTHON" -m venv "$scratch/tools"
"$scratch/tools/bin/python" -m pip install -q build 'twine>=6.1' \
    'readme-renderer[md]'
rm -rf dist
# without --sdist or --wheel, the wheel is built from the source distribution
"$scratch/tools/bin/python" -m build
"$scratch/tools/bin/python" -m twine check --strict dist/*

say "install the wheel with the extra $EXTRAS, in an empty environment"
"$PYTHON" -m venv "$scratch/empty"
set -- "$PWD"/dist/*.whl
"$scratch/empty/bin/python" -m pip install -q \
    ${TORCH_INDEX:+--extra-index-url "$TORCH_INDEX"} "$1[$EXTRAS]"

say 'run the commands of users'
cp tools/dev/smoke_test.py "$scratch"
(cd "$scratch" && env -u PYTHONPATH \
    "$scratch/empty/bin/python" smoke_test.py "$scratch/elsewhere")
say "$(ls dist) is ready to publish"
