# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Tables of names, one for each family of releases.

A new family is a table here and a place in ``FAMILIES``.
"""

from .deit import CAIT, PARALLEL_VIT, PATCH_CONVNET, RESMLP
from .family import Family
from .vit import (
    BARE,
    CLASSIFIER,
    CLCA,
    CLIP,
    HF_CLIP,
    HF_VIT,
    TOKEN_REDUCTION,
    TORCHVISION,
    TRANSFG,
    VIT,
)

__all__ = ['Family']

# in this order: those with names of others come before them
FAMILIES = (
    *(CLASSIFIER, TRANSFG, CLIP, HF_CLIP, HF_VIT, TORCHVISION, CLCA),
    *(TOKEN_REDUCTION, PARALLEL_VIT, PATCH_CONVNET, CAIT, RESMLP, VIT, BARE),
)
