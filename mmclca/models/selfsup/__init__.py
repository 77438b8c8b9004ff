# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from .beit import StemBEiTViT
from .distilled_mae import DistilledMAE
from .encoder import SegmentedMAEViT
from .grafit_model import Grafit
from .mae_decoder import CheckedMAEDecoder
from .masking import fixed_masks
from .mirl import MIRL, MIRLHead
from .mirl_decoders import MIRLDecoders
from .moco_v3 import moco_v3_loss
from .views import ViewsDataPreprocessor

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
