#!/bin/sh
# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
#
# Measures CaiT, ResMLP and PatchConvNet on a CPU with one thread and writes
# work_dirs/benchmarks/architectures_*: against timm's where timm has them, CaiT
# with ToMe, its memory against a plain ViT's, and PatchConvNet against
# ResNet-50. About ten minutes. Options of compare_speed.py may follow. PYTHON
# names the interpreter.
# shellcheck source=../dev/measure.sh
. "$(dirname "$0")/../dev/measure.sh"

measure architectures_cait $models/cait-xxs24_timm.py \
    --configs $bases/cait-xxs24-p16.py --rounds 15 "$@"
measure architectures_cait_reduced $bases/cait-xxs24-p16.py \
    --methods ToMe --keep-rates 0.5 --clca no --rounds 15 "$@"
measure architectures_cait_memory $models/vit-xxs24_384.py \
    --configs $models/cait-xxs24_384.py --memory --rounds 5 "$@"
measure architectures_resmlp $models/resmlp-s12_timm.py \
    --configs $bases/resmlp-s12-p16.py --fuse --rounds 15 "$@"
measure architectures_patchconvnet $models/resnet50.py \
    --configs $bases/patchconvnet-s60.py --rounds 15 "$@"
