# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# Four architectures trained from scratch: 2,000 synthetic leaves of 16
# cultivars at 112 px, 40 epochs. A ViT, a CaiT, a ResMLP and a PatchConvNet,
# small ones of about the same cost. Forward passes in bfloat16.
# Results: docs/results/from_scratch.md.
# Command: python tools/sweep.py configs/sweeps/architectures_from_scratch.py \
#   --jobs 2
# The environment variable MMCLCA_DATA names the folder of data sets; the
# leaves are drawn by the command in
# configs/_base_/datasets/synthetic-leaves-16_112.py.
datasets = ['synthetic-leaves-16']
methods = ['none']
keep_rates = [1.0]
sizes = [112]
clca = ['base']
seeds = [1]
recipe = 'scratch_40e'


def _arch(channels, layers, **more):
    """Options for a network of another width and depth."""
    arch = dict(_delete_=True, embed_dims=channels, num_layers=layers, **more)
    return {'model.backbone.arch': arch, 'model.head.in_channels': channels}


blocks = [
    dict(
        variant='vit',
        backbones=['deit3-tiny-p16'],
        options={
            **_arch(192, 6, num_heads=3, feedforward_channels=768),
            'model.backbone.layer_scale_init_value': 0.0,
        },
    ),
    dict(
        variant='cait',
        backbones=['cait-xxs24-p16'],
        options=_arch(192, 6, num_heads=4, feedforward_channels=768),
    ),
    dict(
        variant='resmlp', backbones=['resmlp-s12-p16'], options=_arch(192, 9)
    ),
    dict(
        variant='patchconvnet',
        backbones=['patchconvnet-s60'],
        options=_arch(256, 14),
    ),
]
options = {
    'model.backbone.drop_path_rate': 0.0,
    'optim_wrapper.type': 'mmclca.BF16OptimWrapper',
    'default_hooks.logger.interval': 62,  # an epoch
    # the images are small and decoded only once: separate worker processes
    # would only compete with the training
    'train_dataloader.num_workers': 0,
    'test_dataloader.num_workers': 0,
}
weights = dict.fromkeys(
    ['cait-xxs24-p16', 'resmlp-s12-p16', 'patchconvnet-s60']
)  # None: from scratch
keep_checkpoints = True  # to look at what they pool
