#!/usr/bin/env bash
# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# From images without labels to a classifier in one file: draw leaves, pre-train
# a masked autoencoder, look at what it reconstructs, train a CLCA classifier
# from it, fit another one to photos, export.
#   bash demo/pretraining.sh FOLDER [EPOCHS] [IMAGES OF A CLASS]
# PYTHON names the interpreter.
set -eu
python=${PYTHON:-python}
folder=$1 epochs=${2:-20} images=${3:-40}
export MMCLCA_DATA=$folder
tools=$(dirname "$0")/../tools
configs=$(dirname "$0")/../configs/mae_lite

"$python" "$tools"/dataset_converters/synthetic_leaves.py \
    "$folder"/unlabelled_leaves --classes 8 --per-class "$images" --size 128
"$python" "$tools"/dataset_converters/synthetic_leaves.py \
    "$folder"/synthetic_leaves --classes 8 --per-class "$images" --size 128 \
    --seed 1

pretraining=$configs/mae_vit-tiny-p16_1xb64-100e_leaves-112px.py
"$python" "$tools"/train.py "$pretraining" --work-dir "$folder"/mae \
    --cfg-options train_cfg.max_epochs="$epochs" \
    param_scheduler.0.T_max="$epochs" param_scheduler.0.warmup=0 \
    train_dataloader.batch_size=32 train_dataloader.num_workers=0 \
    train_dataloader.persistent_workers=False \
    default_hooks.checkpoint.interval="$epochs"
weights=$folder/mae/epoch_$epochs.pth
"$python" "$tools"/visualization/vis_reconstruction.py "$pretraining" \
    "$weights" --leaves 2 --out "$folder"/reconstructions.png

clca=clca-evit-kr50_vit-tiny-12h-p16_1xb32-40e_synthetic-leaves-112px
"$python" "$tools"/train.py "$configs"/$clca.py --work-dir "$folder"/clca \
    --cfg-options load_from="$weights" train_cfg.max_epochs="$epochs" \
    param_scheduler.0.T_max="$epochs" param_scheduler.0.warmup=0 \
    train_dataloader.num_workers=0 val_dataloader.num_workers=0 \
    default_hooks.checkpoint.interval="$epochs"

"$python" -m mmclca fit "$folder"/synthetic_leaves/images --weights "$weights" \
    --probe-only --out "$folder"/fitted
"$python" "$tools"/deployment/export.py "$folder"/clca/epoch_"$epochs".pth \
    --format pt2 --out "$folder"/clca.pt2
