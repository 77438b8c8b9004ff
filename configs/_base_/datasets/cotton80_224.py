# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# 80 cotton cultivars (Ultra-FGVC). As in the papers, models are trained on
# trainval and tested on test. The environment variable MMCLCA_DATA names the
# dataset folder.
_base_ = './leaves_bs32_224.py'
num_classes = 80
cotton80 = dict(
    type='mmclca.UltraFGVC',
    dataset='cotton80',
    data_root='{{$MMCLCA_DATA:data}}',
)
train_dataloader = dict(dataset=dict(**cotton80, split='trainval'))
val_dataloader = dict(dataset=dict(**cotton80, split='test'))
test_dataloader = val_dataloader
