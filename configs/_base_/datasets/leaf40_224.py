# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# 40 plant species (UCI Leaf), white background, three training images per
# class. The environment variable MMCLCA_DATA names the dataset folder.
_base_ = './leaves_bs32_224.py'
num_classes = 40
data_root = '{{$MMCLCA_DATA:data}}/leaf40_white'
leaf40 = dict(
    type='CustomDataset',
    data_root=data_root,
    classes=f'{data_root}/classes.txt',
)
train_dataloader = dict(dataset=dict(**leaf40, ann_file='train_3shot.txt'))
val_dataloader = dict(dataset=dict(**leaf40, ann_file='test.txt'))
test_dataloader = val_dataloader
