# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# A few photos per class, from a linear probe: the best recipe in
# configs/sweeps/few_photos_why.py.
# The head starts from a classifier in closed form (ProbeInitHook, in the
# configs); AdamW with smaller steps for earlier layers, two epochs of warm-up
# and a cosine over 20. An epoch has at least 256 images
# (MinLengthSampler): at least 160 steps with batches of 32.
optim_wrapper = dict(
    optimizer=dict(type='AdamW', lr=2e-3, weight_decay=0.05, fused=True),
    constructor='LearningRateDecayOptimWrapperConstructor',
    paramwise_cfg=dict(
        layer_decay_rate=0.75,
        flat_decay_mult=0.0,  # biases, norms, layer scale: all 1-D parameters
        custom_keys={
            '.cls_token': dict(decay_mult=0.0),
            '.pos_embed': dict(decay_mult=0.0),
            '.register_tokens': dict(decay_mult=0.0),
        },
    ),
)
param_scheduler = [
    dict(
        type='mmclca.WarmupCosineLR',
        T_max=20,
        warmup=2,
        convert_to_iter_based=True,
    )
]
train_cfg = dict(by_epoch=True, max_epochs=20, val_interval=20)
val_cfg = {}
test_cfg = {}
