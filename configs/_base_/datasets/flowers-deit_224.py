# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# 102 species of flowers (Oxford 102 Flowers) at 224 px, with the augmentation
# of DeiT: transfer as in Touvron's thesis, section 3.7. Models are trained on
# trainval and tested on test; each image once an epoch.
_base_ = './imagenet_224.py'
num_classes = 102
flowers = dict(
    _delete_=True,
    type='Flowers102',
    data_root='{{$MMCLCA_DATA:data}}/Flowers102',
)
train_dataloader = dict(
    sampler=dict(_delete_=True, type='DefaultSampler', shuffle=True),
    dataset=dict(**flowers, split='trainval', pipeline=_base_.train_pipeline),
)
val_dataloader = dict(
    dataset=dict(**flowers, split='test', pipeline=_base_.test_pipeline)
)
test_dataloader = val_dataloader
