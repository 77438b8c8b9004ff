# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from .encoder import SegmentedMAEViT, StemBEiTViT
from .grafit_model import Grafit
from .mae import CheckedMAEDecoder, DistilledMAE
from .masking import fixed_masks
from .mirl import MIRL, MIRLHead
from .mirl_decoders import MIRLDecoders
from .views import ViewsDataPreprocessor, moco_v3_loss

__all__ = [
    'CheckedMAEDecoder',
    'DistilledMAE',
    'Grafit',
    'MIRL',
    'MIRLDecoders',
    'MIRLHead',
    'SegmentedMAEViT',
    'StemBEiTViT',
    'ViewsDataPreprocessor',
    'fixed_masks',
    'moco_v3_loss',
]
