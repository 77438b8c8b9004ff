# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# 37 breeds of cats and dogs (Oxford-IIIT Pets). Models are trained on trainval
# and tested on test. The environment variable MMCLCA_DATA names the dataset
# folder.
_base_ = './leaves_bs32_448.py'
num_classes = 37
pets = dict(
    type='OxfordIIITPet', data_root='{{$MMCLCA_DATA:data}}/Oxford-IIIT_Pets'
)
train_dataloader = dict(dataset=dict(**pets, split='trainval'))
val_dataloader = dict(dataset=dict(**pets, split='test'))
test_dataloader = val_dataloader
