# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# Training sizes of DeiT III (Touvron's thesis, Table 6.6): ViT-B from scratch
# on ImageNet-1k at 128, 160, 192 and 224 px, 400 epochs by its recipe. The
# rows of the table are these models after 20 epochs at 224 px, each as
# load_from of configs/deit3/deit3-base-p16_8xb64-20e_imagenet-224px.py.
# Results: none yet.
# Command: python tools/sweep.py configs/sweeps/deit3_sizes.py
# Batches are of one process: for the recipe's 2048,
# train_dataloader.batch_size times the processes of a run.
datasets = ['imagenet-deit3']
backbones = ['deit3-base-p16']
methods = ['none']
keep_rates = [1.0]
sizes = [128, 160, 192, 224]


def _whole(size):
    """Test on the whole of the short side."""
    return {'test_dataloader.dataset.pipeline.1.scale': size}


blocks = [dict(sizes=[size], options=_whole(size)) for size in sizes]
clca = ['base']
seeds = [0]
recipe = 'deit3_400e'
options = {
    'model.backbone.drop_path_rate': 0.1,
    'model.head.loss': dict(type='mmclca.ThresholdedBCE'),
    'model.train_cfg': dict(
        augments=[
            dict(type='Mixup', alpha=0.8),
            dict(type='CutMix', alpha=1.0),
        ]
    ),
}
weights = {'deit3-base-p16': None}  # from scratch
keep_checkpoints = True
