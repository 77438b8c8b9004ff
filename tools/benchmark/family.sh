#!/bin/sh
# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
#
# Measures the ViT family on a CPU with one thread and writes
# work_dirs/benchmarks/family_*: parallel branches against layers in sequence, stems
# against the linear one, and token reduction of models with branches and of
# distilled ones, all of the width of ViT-S/16 at 224 px. About ten minutes.
# Options of compare_speed.py may follow. PYTHON names the interpreter.
# shellcheck source=../dev/measure.sh
. "$(dirname "$0")/../dev/measure.sh"

measure family_parallel $models/vit-s_36x1.py --configs \
    $bases/par-vit-small-18x2-p16.py $models/vit-s_12x3.py \
    $models/vit-s_9x4.py --fuse --batch 1 2 4 8 --rounds 7 "$@"
measure family_stems $models/vit-s_linear.py --configs \
    $models/vit-s_hmlp-bn.py $models/vit-s_hmlp-ln.py $models/vit-s_conv.py \
    --rounds 15 "$@"
reduced='--methods EViT ToMe --keep-rates 0.5 --clca yes --rounds 15'
# shellcheck disable=SC2086  # these are several words
{
    measure family_reduced_branches $models/vit-s_6x2.py $reduced "$@"
    measure family_reduced_distilled \
        $bases/deit-small-distilled-p16.py $reduced "$@"
}
