# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# The recipe of DeiT (Touvron's thesis, 2022, Table 3.9) without its teacher:
# AdamW with a learning rate of 5e-4 for each 512 images of a batch, here of
# 1024; five epochs of warm-up from 1e-6, a cosine to 1e-5, a step per epoch;
# gradients are not clipped. Configs hand `mixup` and `loss` to their models,
# as of every recipe for ImageNet.
optim_wrapper = dict(
    optimizer=dict(
        type='AdamW', lr=5e-4 * 1024 / 512, weight_decay=0.05, fused=True
    ),
    paramwise_cfg=dict(
        flat_decay_mult=0.0,  # biases, norms, layer scale: all 1-D parameters
        custom_keys={
            '.cls_token': dict(decay_mult=0.0),
            '.dist_token': dict(decay_mult=0.0),
            '.pos_embed': dict(decay_mult=0.0),
            '.cache.clr': dict(decay_mult=0.0),  # CLR tokens and positions
            '.register_tokens': dict(decay_mult=0.0),
        },
    ),
)
param_scheduler = [
    dict(
        type='mmclca.WarmupCosineLR',
        T_max=300,
        warmup=5,
        start_factor=1e-3,
        eta_min_ratio=1e-2,
    )
]
# one of the two for each batch
mixup = dict(
    augments=[dict(type='Mixup', alpha=0.8), dict(type='CutMix', alpha=1.0)]
)
loss = dict(type='LabelSmoothLoss', label_smooth_val=0.1, mode='original')
train_cfg = dict(by_epoch=True, max_epochs=300, val_interval=10)
val_cfg = {}
test_cfg = {}
auto_scale_lr = dict(base_batch_size=1024)
