# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from .distilled_mae import DistilledMAE
from .encoder import SegmentedMAEViT, StemBEiTViT
from .grafit_model import Grafit
from .masking import fixed_masks
from .mirl import MIRL, MIRLHead
from .mirl_decoders import MIRLDecoders
from .views import ViewsDataPreprocessor, moco_v3_loss

__all__ = [
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
