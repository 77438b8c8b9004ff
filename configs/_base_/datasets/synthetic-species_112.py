# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# Drawn leaves of 16 cultivars of four species, whose species are the labels;
# 125 training images of each cultivar:
# python tools/dataset_converters/synthetic_leaves.py \
#   data/synthetic_species --classes 16 --species 4 --per-class 195 \
#   --size 128 --difference 2 --val-fraction 0.16 --test-fraction 0.2
_base_ = './synthetic-leaves_112.py'
num_classes = 4
data_root = '{{$MMCLCA_DATA:data}}/synthetic_species'
leaves = dict(
    type='mmclca.CoarseDataset',
    data_root=data_root,
    classes=f'{data_root}/classes.txt',
    levels=f'{data_root}/levels.csv',
    level='species',
)
train_dataloader = dict(dataset=leaves)
val_dataloader = dict(dataset=leaves)
test_dataloader = dict(dataset=leaves)
