# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# Settings shared by all leaf datasets. The last batch of an epoch is dropped,
# because a batch of one would break the BatchNorm of the CLA head.
train_dataloader = dict(
    batch_size=32,
    num_workers=4,
    sampler=dict(type='DefaultSampler', shuffle=True),
    batch_sampler=dict(type='mmclca.ClampedBatchSampler', drop_last=True),
)
val_dataloader = dict(
    batch_size=48,
    num_workers=4,
    sampler=dict(type='DefaultSampler', shuffle=False),
)
test_dataloader = val_dataloader
val_evaluator = dict(type='Accuracy', topk=(1,))
test_evaluator = val_evaluator
