# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# The recipe of scratch_40e.py over 60 epochs.
_base_ = './scratch_40e.py'
param_scheduler = [
    dict(
        type='mmclca.WarmupCosineLR',
        T_max=60,
        warmup=5,
        convert_to_iter_based=True,
    )
]
train_cfg = dict(max_epochs=60, val_interval=60)
