# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# 200 soybean cultivars (Ultra-FGVC). As in the papers, models are trained on
# trainval and tested on test. The environment variable MMCLCA_DATA names the
# dataset folder.
_base_ = './leaves_bs32_448.py'
num_classes = 200
soylocal = dict(
    type='mmclca.UltraFGVC',
    dataset='soylocal',
    data_root='{{$MMCLCA_DATA:data}}',
)
train_dataloader = dict(dataset=dict(**soylocal, split='trainval'))
val_dataloader = dict(dataset=dict(**soylocal, split='test'))
test_dataloader = val_dataloader
