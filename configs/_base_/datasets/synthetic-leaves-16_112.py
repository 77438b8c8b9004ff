# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# Synthetic leaves of 16 clearly different cultivars, 125 training images per
# cultivar, enough to train a small ViT from scratch:
# python tools/dataset_converters/synthetic_leaves.py \
#   data/synthetic_leaves_16 --classes 16 --per-class 195 --size 128 \
#   --difference 2 --val-fraction 0.16 --test-fraction 0.2
_base_ = './synthetic-leaves_112.py'
num_classes = 16
data_root = '{{$MMCLCA_DATA:data}}/synthetic_leaves_16'
leaves = dict(data_root=data_root, classes=f'{data_root}/classes.txt')
train_dataloader = dict(dataset=leaves)
val_dataloader = dict(dataset=leaves)
test_dataloader = dict(dataset=leaves)
