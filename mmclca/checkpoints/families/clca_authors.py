# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""The CLCA authors, and TokenReduction: timm's names and those of CLR tokens,
of reducers and of the CLA head."""

from .family import Family
from .timm_vit import RENAMES

REDUCERS = (
    (r'clr$', 'backbone.cache.clr'),
    (r'cluster_layers\.(\d+)\.v$', r'backbone.reducer.stages.\1'),
    (r'(score_predictor|cluster_layers)\.', 'backbone.reducer.stages.'),
)
TOKEN_REDUCTION = Family(
    mark=r'clr$|(score_predictor|cluster_layers)\.',
    renames=(*REDUCERS, *RENAMES),
)
CLCA = Family(
    mark=r'ifa_head\.',
    renames=(
        *REDUCERS,
        (r'ifa_head\.0\.', 'head.layers.'),
        (r'ifa_head\.', 'head.'),
        *RENAMES,
    ),
    left_out=r'head\.',  # a linear one beside the CLA head is dead weight
)
