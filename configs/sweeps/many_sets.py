# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# A few photographs a class of nine sets, nothing trained: one factor at a time
# from the default of fit. tools/sweep.py does not read this file: what is
# missing among the results is measured by
# `python tools/research/pages.py few_photographs`.
# Results: docs/results/few_photographs.md.
# The environment variables MMCLCA_DATA and MMCLCA_WEIGHTS name the folders
# of data sets and of weights.
_reducers = ('ATC', 'MCTF', 'DiffRate', 'ToMe', 'EViT')
_full = [dict(img_size=size) for size in (96, 128, 160, 192, 224, 256, 288)]
_rates = [
    dict(method=method, keep_rate=rate)
    for method in _reducers
    for rate in (0.7, 0.5, 0.25)
]
_sizes = [
    dict(method=method, keep_rate=0.5, img_size=size)
    for method in ('ATC', 'DiffRate')
    for size in (160, 192, 256, 288)
]
_views = [
    dict(network, view=view)
    for network in ({}, dict(method='ATC', keep_rate=0.5))
    for view in ('whole', 'padded', 'cropped', 'mirrored')
]
networks = [
    dict(backbone=backbone, row=one.get('method', 'none'), **one)
    for backbone in ('deit-tiny-p16', 'vit-tiny-p16')
    for one in (*_full, *_rates, *_sizes, *_views)
]
# layers, and of each CLS (0), average (1), standard deviation (2) of tokens
_most, _all = list(range(9)), list(range(12))
readings = {
    'average of layers 0 to 8': (_most, [1]),
    'CLS and deviation of layers 0 to 8': (_most, [0, 2]),
    'average of all layers': (_all, [1]),
    'CLS and average of all layers': (_all, [0, 1]),
    'CLS and deviation of all layers': (_all, [0, 2]),
    'all three of all layers': (_all, [0, 1, 2]),
    'CLS of the last layer': ([11], [0]),
}
# kind and strength
classifiers = {
    'ridge 0.03': ('ridge', 0.03),
    'ridge 0.1': ('ridge', 0.1),
    'ridge 0.3': ('ridge', 0.3),
}
counts = (1, 3, 5)
