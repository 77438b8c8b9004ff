# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# 198 soybean cultivars at growth stage R6 (Ultra-FGVC). As in the papers,
# models are trained on trainval and tested on test. The environment variable
# MMCLCA_DATA names the dataset folder.
_base_ = './leaves_bs32_448.py'
num_classes = 198
soyageing_r6 = dict(
    type='mmclca.UltraFGVC',
    dataset='soyageing_r6',
    data_root='{{$MMCLCA_DATA:data}}',
)
train_dataloader = dict(dataset=dict(**soyageing_r6, split='trainval'))
val_dataloader = dict(dataset=dict(**soyageing_r6, split='test'))
test_dataloader = val_dataloader
