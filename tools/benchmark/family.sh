#!/bin/sh
# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
#
# Measures the ViT family on a CPU with one thread and writes
# docs/benchmarks/family_*: parallel branches against layers in sequence, stems
# against the linear one, and token reduction of models with branches and of
# distilled ones, all of the width of ViT-S/16 at 224 px. About ten minutes.
# Options of throughput.py may follow. PYTHON names the interpreter.
set -eu
cd "$(dirname "$0")/../.."
models=configs/_base_/speed

measure() { # NAME BASELINE OPTION...
    name=$1 baseline=$2
    shift 2
    echo "$name" >&2
    OMP_NUM_THREADS=1 "${PYTHON:-python}" tools/benchmark/throughput.py \
        --baseline "$baseline" --cpu-time --out "docs/benchmarks/family_$name" \
        "$@"
}

measure parallel $models/vit-s_36x1.py --configs \
    configs/_base_/models/par-vit-small-18x2-p16.py $models/vit-s_12x3.py \
    $models/vit-s_9x4.py --fuse --batch 1 2 4 8 --rounds 7 "$@"
measure stems $models/vit-s_linear.py --configs $models/vit-s_hmlp-bn.py \
    $models/vit-s_hmlp-ln.py $models/vit-s_conv.py --rounds 15 "$@"
reduced='--methods EViT ToMe --keep-rates 0.5 --clca yes --rounds 15'
# shellcheck disable=SC2086  # these are several words
{
    measure reduced_branches $models/vit-s_6x2.py $reduced "$@"
    measure reduced_distilled \
        configs/_base_/models/deit-small-distilled-p16.py $reduced "$@"
}
