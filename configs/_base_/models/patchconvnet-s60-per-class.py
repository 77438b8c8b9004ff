# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# PatchConvNet-S60 with a query a class, fine-tuned on ImageNet-1k from the one
# of a single query. For other classes set model.backbone.multiclass and
# model.head.num_classes to their number.
_base_ = './patchconvnet-s60.py'
model = dict(
    backbone=dict(multiclass=1000),
    head=dict(
        _delete_=True,
        type='mmclca.PerClassHead',
        num_classes=1000,
        in_channels=384,
    ),
)
load_from = 'https://dl.fbaipublicfiles.com/deit/s60_multi_finetune_1k.pth'
