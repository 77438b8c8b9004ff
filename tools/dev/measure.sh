#!/bin/sh
# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
#
# Shared functions of family.sh and architectures.sh, which source this file.
# PYTHON is the interpreter.
set -eu
cd "$(dirname "$0")/../.."
# shellcheck disable=SC2034  # both read it
models=configs/_base_/speed bases=configs/_base_/models

measure() { # NAME BASELINE OPTION...
    name=$1 baseline=$2
    shift 2
    echo "Measuring $name" >&2
    OMP_NUM_THREADS=1 "${PYTHON:-python}" tools/research/compare_speed.py \
        --baseline "$baseline" --out "${OUT:-work_dirs/benchmarks}/$name" "$@"
}
