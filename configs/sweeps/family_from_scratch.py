# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# The ViT family trained from scratch: 2,000 synthetic leaves of 16 cultivars
# at 112 px, 40 epochs. ViT-Ti as 12 layers, as 6 of two parallel branches,
# with the hMLP stem, and with a distillation token but no teacher: both heads
# learn the labels. EViT has keep rate 1. Forward
# passes in bfloat16.
# Results: docs/results/from_scratch.md.
# Command: python tools/sweep.py configs/sweeps/family_from_scratch.py --jobs 2
# The environment variable MMCLCA_DATA names the folder of data sets; the
# leaves are drawn by the command in
# configs/_base_/datasets/synthetic-leaves-16_112.py.
datasets = ['synthetic-leaves-16']
methods = ['EViT']
keep_rates = [1.0]
sizes = [112]
clca = ['base']
recipe = 'scratch_40e'
_plain = 'deit3-tiny-p16'
_distilled = 'deit-tiny-distilled-p16'
_hmlp = {'model.backbone.stem': dict(type='mmclca.HMLPStem')}
_models = [
    dict(variant='12x1', backbones=[_plain]),
    dict(variant='6x2', backbones=['par-vit-tiny-6x2-p16']),
    dict(variant='hmlp', backbones=[_plain], options=_hmlp),
    dict(variant='distilled', backbones=[_distilled]),
]
blocks = [dict(model, seeds=[seed]) for seed in (1, 2) for model in _models]
options = {
    'model.backbone.layer_scale_init_value': 0.0,  # short of epochs
    'model.backbone.drop_path_rate': 0.0,
    'optim_wrapper.type': 'mmclca.BF16OptimWrapper',
    'default_hooks.logger.interval': 62,  # an epoch
    # the images are small and decoded only once: separate worker processes
    # would only compete with the training
    'train_dataloader.num_workers': 0,
    'test_dataloader.num_workers': 0,
}
weights = {_distilled: None}
keep_checkpoints = True  # to look at the kept patches
