# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# Few photos, few tokens: each reducer on frozen ViTs, and what else costs as
# little. tools/sweep.py does not read this file; tools/research/few_tokens.py
# measures missing results.
# Results: docs/results/few_photos.md.
# The environment variables MMCLCA_DATA and MMCLCA_WEIGHTS name the folders
# for datasets and weights.
_names = 'coffee5 cotton5 flower17 grape5 leaf40 leaf40_white leafsnap27'
_names += ' mangodis8 mushroom10 seedlings12 strawberry5'
_names += ' chilli4 dates9 medleaf5 ricegrain14'
datasets = tuple(_names.split())
# files of weights of networks with token reduction
vits = ('vit_tiny_patch16_224.safetensors', 'deit_tiny_patch16_224.pth')
# in the order in which they are computed
rates = (0.5, 0.25, 0.7, 0.1)
# of the full networks, other than 224
img_sizes = (192, 160, 128, 96)
# layers of the full networks, other than 12
depths = (11, 10, 9, 8, 6, 4)
# photos per class, other than 3, for the full networks and some reducers
counts = (1, 5, 10)
# image sizes by file of weights
cnns = {
    'mobileone_s0_reparam.safetensors': (128, 160, 192, 224, 256),
    'tf_efficientnet_lite0.safetensors': (128, 160, 192, 224),
    'tf_efficientnet_lite1.safetensors': (160, 192, 240),
}
# reducers at the first keep rate and smaller sizes
smaller = ('ATC', 'DiffRate')
smaller_sizes = (192, 160, 128)
# license by network
licenses = dict(
    deit_tiny='Apache-2.0',
    vit_tiny='Apache-2.0',
    mobileone_s0='research only',
    tf_efficientnet_lite0='Apache-2.0',
    tf_efficientnet_lite1='Apache-2.0',
)
# at which networks are chosen, in GMACs
budgets = (0.1, 0.2, 0.3, 0.45, 0.63, 0.9, 1.26)
