# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# The recipe of Grafit, Touvron's thesis, section 2.4: SGD with Nesterov's
# momentum, 0.1 for 256 images, five epochs of warm-up and a cosine over 600.
# Silent there: momentum, weight decay and warm-up.
optim_wrapper = dict(
    optimizer=dict(
        type='SGD', lr=0.4, momentum=0.9, weight_decay=1e-4, nesterov=True
    ),
    paramwise_cfg=dict(flat_decay_mult=0.0),
)
param_scheduler = [
    dict(
        type='mmclca.WarmupCosineLR',
        T_max=600,
        warmup=5,
        convert_to_iter_based=True,
    )
]
train_cfg = dict(by_epoch=True, max_epochs=600, val_interval=50)
val_cfg = {}
test_cfg = {}
auto_scale_lr = dict(base_batch_size=1024)
