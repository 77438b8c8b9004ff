# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# The recipe of the CLCA paper and of its authors' code: AdamW, batch 32, two
# epochs of warm-up from 1e-6, a cosine to epoch 45, five epochs at 1e-5. The
# authors train in half precision: tools/train.py --amp, on a GPU.
optim_wrapper = dict(
    # one kernel per parameter; equal to the unfused version up to rounding
    optimizer=dict(type='AdamW', lr=1e-4, weight_decay=0.05, fused=True),
    paramwise_cfg=dict(
        flat_decay_mult=0.0,  # biases, norms, layer scale: all 1-D parameters
        custom_keys={
            '.cls_token': dict(decay_mult=0.0),
            '.pos_embed': dict(decay_mult=0.0),
            '.cache.clr': dict(decay_mult=0.0),  # CLR tokens and positions
            '.register_tokens': dict(decay_mult=0.0),
        },
    ),
)
param_scheduler = [
    dict(
        type='mmclca.WarmupCosineLR',
        T_max=45,
        warmup=2,
        start_factor=0.01,
        eta_min_ratio=0.1,
    )
]
train_cfg = dict(by_epoch=True, max_epochs=50, val_interval=10)
val_cfg = {}
test_cfg = {}
# for tools/train.py --auto-scale-lr; the authors do not scale
auto_scale_lr = dict(base_batch_size=32)
