# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# 1,110 soybean cultivars (Ultra-FGVC). As in the papers, models are trained on
# trainval and tested on test. The environment variable MMCLCA_DATA names the
# dataset folder.
_base_ = './leaves_bs32_448.py'
num_classes = 1110
soygene = dict(
    type='mmclca.UltraFGVC',
    dataset='soygene',
    data_root='{{$MMCLCA_DATA:data}}',
)
train_dataloader = dict(dataset=dict(**soygene, split='trainval'))
val_dataloader = dict(dataset=dict(**soygene, split='test'))
test_dataloader = val_dataloader
