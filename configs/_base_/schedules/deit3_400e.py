# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# The recipe of DeiT III on ImageNet-1k (Touvron's thesis, 2022, Table 6.1):
# LAMB, which clips gradients at a norm of 1, binary cross-entropy, batches of
# 2048. The public code has a learning rate of 4e-3 for ViT-S.
_base_ = './deit_300e.py'
optim_wrapper = dict(
    optimizer=dict(_delete_=True, type='Lamb', lr=0.003, weight_decay=0.02)
)
param_scheduler = [
    dict(
        type='mmclca.WarmupCosineLR',
        T_max=400,
        warmup=5,
        start_factor=1e-6 / 0.003,
        eta_min_ratio=1e-5 / 0.003,
    )
]
# targets of mixed images are one for each class in them; no smoothing
loss = dict(_delete_=True, type='mmclca.ThresholdedBCE')
train_cfg = dict(max_epochs=400, val_interval=10)
auto_scale_lr = dict(base_batch_size=2048)
