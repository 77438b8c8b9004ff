#!/bin/sh
# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
#
# Measures methods with CLCA on a GPU and writes docs/benchmarks/gpu_*: ViT-B/16
# at 448 px, batch 128, and ViT-S/16 at 224 px, batch 512, in bf16: ten methods
# in eager inference, four in training steps and compiled. About an hour by
# estimate, not yet run; most of it is compiling. Options of throughput.py may
# follow, for example --methods EViT TopK. PYTHON names the interpreter.
set -eu
cd "$(dirname "$0")/../.."

measure() { # NAME OPTION...
    name=$1
    shift
    echo "$name" >&2
    "${PYTHON:-python}" tools/benchmark/throughput.py --device cuda \
        --amp bf16 --clca yes --keep-rates 0.5 0.1 --rounds 20 --warm-up 4 \
        --memory --out "docs/benchmarks/gpu_$name" "$@"
}

both() { # SUFFIX OPTION...
    suffix=$1
    shift
    measure "vit-s_224px$suffix" --arch deit-small --img-size 224 \
        --batch 512 "$@"
    measure "vit-b_448px$suffix" --arch base --img-size 448 --batch 128 "$@"
}

few='none EViT TopK ToMe'
more='ATS SiT PatchMerger DPCKNN DynamicViT'
# shellcheck disable=SC2086  # these are several words
{
    both '' --methods mmpretrain $few $more "$@"
    both _train --train --methods $few "$@"
    both _compiled --compile --methods $few "$@"
    both _train_compiled --train --compile --methods $few "$@"
}
