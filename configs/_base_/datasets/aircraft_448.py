# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# 100 variants of aircraft (FGVC-Aircraft). Models are trained on trainval and
# tested on test. The environment variable MMCLCA_DATA names the folder of data
# sets.
_base_ = './leaves_bs32_448.py'
num_classes = 100
aircraft = dict(
    type='FGVCAircraft', data_root='{{$MMCLCA_DATA:data}}/fgvc-aircraft-2013b'
)
train_dataloader = dict(dataset=dict(**aircraft, split='trainval'))
val_dataloader = dict(dataset=dict(**aircraft, split='test'))
test_dataloader = val_dataloader
