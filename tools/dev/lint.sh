#!/bin/sh
# Runs lint checks (default: all) and fails if one of them fails:
# tools/dev/lint.sh [ruff-check] [ruff-format] [codespell] [duplicates] [prose]
#                   [types]
set -u
cd "$(dirname "$0")/../.." || exit 1

if [ -z "${PYTHON:-}" ]; then
    PYTHON=python
    [ ! -x .venv/bin/python ] || PYTHON=.venv/bin/python
fi
CODE='mmclca tools configs demo examples'
TEXTS='Makefile *.cff *.md *.toml *.yml'

run() {
    printf '%s\n' "== $*"
    "$PYTHON" -m "$@" || failed="$failed $check"
}

# pylint parses all files to find the same, in two minutes. symilar succeeds
# whatever it finds.
find_duplicates() {
    echo '== symilar'
    find $CODE -name '*.py' -exec "$PYTHON" -m pylint.checkers.symilar -d 8 \
        --ignore-comments --ignore-docstrings {} + >"$found"
    grep -q 'duplicates=0 ' "$found" && return
    cat "$found"
    failed="$failed duplicates"
}

found=$(mktemp)
trap 'rm -f "$found"' EXIT
failed=
[ $# -gt 0 ] || set -- ruff-check ruff-format codespell duplicates \
    prose types
for check in "$@"; do
    # $CODE and $TEXTS are lists of words
    case $check in
    ruff-check) run ruff check $CODE tests docs/conf.py setup.py ;;
    ruff-format) run ruff format --check $CODE tests docs/conf.py setup.py ;;
    codespell) run codespell_lib $CODE tests docs $TEXTS ;;
    duplicates) find_duplicates ;;
    prose) run tools.dev.check_prose ;;
    types) run mypy ;;
    *) echo "unknown check: $check" >&2 && exit 2 ;;
    esac
done

[ -z "$failed" ] && echo '== lint: all clean' && exit 0
echo "== lint failed:$failed" >&2
exit 1
