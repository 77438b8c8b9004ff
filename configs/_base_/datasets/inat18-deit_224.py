# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# The 8,142 species of iNaturalist 2018 at 224 px, with the augmentation of
# DeiT: transfer as in Touvron's thesis, section 3.7; each image once an epoch.
# Files as for inat18-family_224.py.
_base_ = './imagenet_224.py'
num_classes = 8142
inat = dict(
    _delete_=True,
    type='mmclca.INaturalist',
    data_root='{{$MMCLCA_DATA:data}}/inat2018',
    level='name',
)
train_dataloader = dict(
    sampler=dict(_delete_=True, type='DefaultSampler', shuffle=True),
    dataset=dict(
        **inat, ann_file='train2018.json', pipeline=_base_.train_pipeline
    ),
)
val_dataloader = dict(
    dataset=dict(
        **inat, ann_file='val2018.json', pipeline=_base_.test_pipeline
    )
)
test_dataloader = val_dataloader
