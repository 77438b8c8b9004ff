# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from .encoder import SegmentedMAEViT, fixed_masks
from .mirl import MIRL, MIRLHead
from .mirl_decoders import MIRLDecoders

__all__ = [
    'MIRL',
    'MIRLDecoders',
    'MIRLHead',
    'SegmentedMAEViT',
    'fixed_masks',
]
