#!/bin/sh
# Removes files written by `make install`, tests and builds. Keeps data and
# training results (data/, work_dirs/), and environments made by hand.
set -eu
cd "$(dirname "$0")/../.."

for venv in .venv .venv-oldest .venv-torch28 .venv-latest; do
    if [ -e $venv/mmclca-ready ] || [ -e $venv/mmclca-started ]; then
        echo "== removing $venv"
        rm -rf $venv
    fi
done
echo '== removing build output and caches'
rm -rf build dist docs/_build ./*.egg-info .hypothesis .mypy_cache \
    .pytest_cache .ruff_cache
find configs mmclca tests tools -name __pycache__ -type d -prune \
    -exec rm -rf {} +
