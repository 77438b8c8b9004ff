# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# 102 species of flowers (Oxford 102 Flowers). Models are trained on trainval
# and tested on test. The environment variable MMCLCA_DATA names the dataset
# folder.
_base_ = './leaves_bs32_448.py'
num_classes = 102
flowers = dict(type='Flowers102', data_root='{{$MMCLCA_DATA:data}}/Flowers102')
train_dataloader = dict(dataset=dict(**flowers, split='trainval'))
val_dataloader = dict(dataset=dict(**flowers, split='test'))
test_dataloader = val_dataloader
