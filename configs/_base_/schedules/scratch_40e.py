# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# A small ViT from scratch on a few thousand images: AdamW, batch 32, five
# epochs of warm-up and a cosine over 40, gradients clipped.
optim_wrapper = dict(
    optimizer=dict(type='AdamW', lr=5e-4, weight_decay=0.05, fused=True),
    clip_grad=dict(max_norm=1.0),
    paramwise_cfg=dict(
        flat_decay_mult=0.0,  # biases, norms, layer scale: all 1-D parameters
        custom_keys={
            '.cls_token': dict(decay_mult=0.0),
            '.dist_token': dict(decay_mult=0.0),
            '.pos_embed': dict(decay_mult=0.0),
        },
    ),
)
param_scheduler = [
    dict(
        type='mmclca.WarmupCosineLR',
        T_max=40,
        warmup=5,
        convert_to_iter_based=True,
    )
]
train_cfg = dict(by_epoch=True, max_epochs=40, val_interval=40)
val_cfg = {}
test_cfg = {}
