# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# 196 models of cars (Stanford Cars). Models are trained on train and tested on
# test. The environment variable MMCLCA_DATA names the dataset folder.
_base_ = './leaves_bs32_448.py'
num_classes = 196
cars = dict(
    type='StanfordCars', data_root='{{$MMCLCA_DATA:data}}/Stanford_Cars'
)
train_dataloader = dict(dataset=dict(**cars, split='train'))
val_dataloader = dict(dataset=dict(**cars, split='test'))
test_dataloader = val_dataloader
