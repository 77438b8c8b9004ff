# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# The same in 1,000 epochs.
_base_ = './mae-lite-finetune_300e.py'
param_scheduler = [
    dict(
        type='mmclca.WarmupCosineLR',
        T_max=1000,
        warmup=5,
        start_factor=0.0,
        eta_min_ratio=1e-6 / 4e-3,
        convert_to_iter_based=True,
    )
]
train_cfg = dict(max_epochs=1000)
