#!/bin/sh
# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
#
# Measures token reduction with CLCA on a GPU, in bf16: ViT-S/16 at 224 px with
# batch size 512, and ViT-B/16 at 448 px with batch size 128.
#
#   sh tools/benchmark/gpu.sh         inference of ten models and training
#                                     steps of four, eager and compiled, at
#                                     keep rates 0.5 and 0.1 (estimate: 1 hour)
#   sh tools/benchmark/gpu.sh quick   inference of five models and training
#                                     steps of three, eager, at keep rate 0.5
#                                     (estimate: 5 minutes)
#
# Writes gpu_*.md, .csv, .json and .png to the folder OUT (default:
# docs/benchmarks). Options of compare_speed.py can follow, for example
# --methods EViT TopK. PYTHON is the interpreter.
set -eu
cd "$(dirname "$0")/../.."
quick=
if [ "${1:-}" = quick ]; then
    quick=yes
    shift
fi
rates=${quick:+0.5}
rounds=${quick:+5}

measure() { # NAME OPTION...
    name=$1
    shift
    echo "Measuring $name" >&2
    # shellcheck disable=SC2086  # several keep rates
    "${PYTHON:-python}" tools/research/compare_speed.py --device cuda \
        --amp bf16 --clca yes --keep-rates ${rates:-0.5 0.1} \
        --rounds "${rounds:-20}" --warm-up 4 --memory \
        --out "${OUT:-docs/benchmarks}/gpu_$name" "$@"
}

both() { # SUFFIX OPTION...
    suffix=$1
    shift
    measure "vit-s_224px$suffix" --arch deit-small --img-size 224 \
        --batch 512 "$@"
    measure "vit-b_448px$suffix" --arch base --img-size 448 --batch 128 "$@"
}

if [ "$quick" ]; then
    both '' --methods mmpretrain none EViT TopK ToMe "$@"
    both _train --train --methods none EViT ToMe "$@"
    exit
fi
few='none EViT TopK ToMe'
more='ATS SiT PatchMerger DPCKNN DynamicViT'
# shellcheck disable=SC2086  # these are several words
{
    both '' --methods mmpretrain $few $more "$@"
    both _train --train --methods $few "$@"
    both _compiled --compile --methods $few "$@"
    both _train_compiled --train --compile --methods $few "$@"
}
