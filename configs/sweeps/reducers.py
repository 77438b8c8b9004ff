# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# Frozen networks with each reducer, compared with the full ViT. tools/sweep.py
# does not read this file; `python tools/research/pages.py reducers` measures
# missing results.
# Results: docs/results/reducers.md.
# The environment variables MMCLCA_DATA and MMCLCA_WEIGHTS name the folders
# for datasets and weights.
# name of a row: reducer and its options
methods = {
    'TopK': ('TopK', {}),
    'EViT': ('EViT', {}),
    'ATS': ('ATS', {}),
    'DynamicViT': ('DynamicViT', {}),
    'SiT': ('SiT', {}),
    'PatchMerger': ('PatchMerger', {}),
    'Sinkhorn': ('Sinkhorn', {}),
    'KMedoids': ('KMedoids', {}),
    'DPCKNN': ('DPCKNN', {}),
    'ToMe': ('ToMe', {}),
    'ToMe-MLERP': ('ToMe', dict(merge='mlerp')),
    'ToFu': ('ToMe', dict(early='prune', merge='mlerp')),
    'ATC': ('ATC', {}),
    'MCTF': ('MCTF', {}),
    'DiffRate': ('DiffRate', {}),
    'PPT': ('PPT', {}),
    'PiToMe': ('PiToMe', {}),
}
runs = [
    ('deit-tiny-p16', 0.5),
    ('vit-tiny-p16', 0.5),
    ('deit-tiny-p16', 0.75),
    ('deit-tiny-p16', 0.25),
    ('deit-tiny-p16', 0.1),
]
