# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# 200 species of birds (CUB-200-2011). Models are trained on train and tested
# on test. The environment variable MMCLCA_DATA names the dataset folder.
_base_ = './leaves_bs32_448.py'
num_classes = 200
cub = dict(type='CUB', data_root='{{$MMCLCA_DATA:data}}/CUB_200_2011')
train_dataloader = dict(dataset=dict(**cub, split='train'))
val_dataloader = dict(dataset=dict(**cub, split='test'))
test_dataloader = val_dataloader
