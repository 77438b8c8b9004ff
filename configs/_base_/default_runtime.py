# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
default_scope = 'mmpretrain'
default_hooks = dict(
    timer=dict(type='IterTimerHook'),
    logger=dict(type='LoggerHook', interval=100),
    param_scheduler=dict(type='ParamSchedulerHook'),
    # a checkpoint with the optimizer's state takes about 1 GB for a ViT-B
    checkpoint=dict(
        type='mmclca.AtomicCheckpointHook', interval=10, max_keep_ckpts=1
    ),
    sampler_seed=dict(type='DistSamplerSeedHook'),
    visualization=dict(type='VisualizationHook', enable=False),
)
custom_hooks = [dict(type='mmclca.ClassCountHook')]
env_cfg = dict(
    cudnn_benchmark=False,
    mp_cfg=dict(mp_start_method='fork', opencv_num_threads=0),
    dist_cfg=dict(backend='nccl'),
)
visualizer = dict(
    type='UniversalVisualizer', vis_backends=[dict(type='LocalVisBackend')]
)
log_level = 'INFO'
randomness = dict(seed=1, deterministic=False)
