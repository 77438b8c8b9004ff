#!/bin/sh
# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
#
# Measures all methods on a GPU and writes docs/benchmarks/gpu_*: ViT-B/16 at
# 448 px, batch 128, and ViT-S/16 at 224 px, batch 512, in bf16, inference and
# training steps, eager and compiled. Options of throughput.py may follow, for
# example --methods EViT TopK --clca yes. PYTHON names the interpreter.
set -eu
cd "$(dirname "$0")/../.."

measure() { # NAME OPTION...
    name=$1
    shift
    echo "$name" >&2
    "${PYTHON:-python}" tools/benchmark/throughput.py --device cuda \
        --amp bf16 --keep-rates 0.5 0.1 --rounds 20 --warm-up 4 --memory \
        --out "docs/benchmarks/gpu_$name" "$@"
}

small='--arch deit-small --img-size 224 --batch 512'
base='--arch base --img-size 448 --batch 128'
# shellcheck disable=SC2086  # these are several words
for compile in '' '--compile'; do
    suffix=${compile:+_compiled}
    measure "vit-s_224px$suffix" $small $compile "$@"
    measure "vit-b_448px$suffix" $base $compile "$@"
    measure "vit-s_224px_train$suffix" $small --train $compile "$@"
    measure "vit-b_448px_train$suffix" $base --train $compile "$@"
done
