# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Tables of parameter names, one per release family.

To add a family, write its table and insert it into ``FAMILIES``.
"""

from . import deit_repository, vit
from .family import Family, Network

__all__ = ['Family', 'Network']

# more specific families first
FAMILIES = (
    vit.CLASSIFIER,
    vit.TRANSFG,
    vit.CLIP,
    vit.HF_CLIP,
    vit.HF_VIT,
    vit.TORCHVISION,
    vit.CLCA,
    vit.TOKEN_REDUCTION,
    deit_repository.PARALLEL_VIT,
    deit_repository.PATCH_CONVNET,
    deit_repository.CAIT,
    deit_repository.RESMLP,
    vit.VIT,
    vit.BARE,
)
NETWORKS = [family.backbone for family in FAMILIES if family.backbone]


def recognize_network(weights: dict) -> Network:
    """Recognize a backbone by its parameter names in this package."""
    for network in NETWORKS:
        if any(mark in weights for mark in network.marks):
            return network
    return vit.NETWORK
