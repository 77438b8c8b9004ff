# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Whose names a file has: a table for each family of releases.

A new family is a file here and a place in ``FAMILIES``.
"""

import re

from .cait import CAIT
from .clca_authors import CLCA, TOKEN_REDUCTION
from .clip import CLIP
from .family import Family
from .mmpretrain import BARE
from .parallel_vit import PARALLEL_VIT
from .patch_convnet import PATCH_CONVNET
from .resmlp import RESMLP
from .timm_vit import VIT

__all__ = ['Family', 'recognize']

# in this order: those with names of others come before them
FAMILIES = (
    CLIP,
    CLCA,
    TOKEN_REDUCTION,
    PARALLEL_VIT,
    PATCH_CONVNET,
    CAIT,
    RESMLP,
    VIT,
    BARE,
)


def recognize(names: list[str]) -> tuple[Family, str] | None:
    """The family of a file, and what precedes the names of its encoder.

    Args:
        names (list[str]): All names of the file.

    Returns:
        tuple[Family, str] | None: None where they are those of a classifier
        of this package, or of no known family.
    """
    for family in FAMILIES:
        for encoder in family.encoders:
            mark = re.compile(re.escape(encoder) + f'(?:{family.mark})')
            if any(map(mark.match, names)):
                return family, encoder
    return None
