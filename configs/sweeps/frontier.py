# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# Three photos per class on eleven datasets: fit, and frozen networks with
# linear classifiers as users would train them. tools/sweep.py does not read
# this file; `python tools/research/pages.py frontier` measures missing
# results.
# Results: docs/results/frontier.md.
# The environment variables MMCLCA_DATA and MMCLCA_WEIGHTS name the folders
# for datasets and weights.
# image sizes by file of weights
cnns = {
    'mobileone_s0_reparam.safetensors': (128, 160, 192, 224, 256),
    'fastvit_t8_reparam_int8src.safetensors': (128, 192, 256),
    'tf_efficientnet_lite0.safetensors': (160, 192, 224),
}
# kind and strength, for one view
classifiers = dict(ridge=0.3, logistic=10.0)
# default method of fit by network
defaults = dict(deit_tiny='ATC', vit_tiny='DiffRate')
# of users, for the full ViT
alternatives = (
    'CLS, last layer, ridge',
    'CLS, last layer, logistic',
    'CLS and average, last layer, ridge',
    'CLS and average, last layer, logistic',
    'CLS and average, all layers, ridge',
    'CLS and average, all layers, logistic',
)
