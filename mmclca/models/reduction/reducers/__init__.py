# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from mmclca.registry import import_modules

from .atc import ATC
from .ats import ATS
from .base import TokenReducer
from .diffrate import DiffRate
from .dpcknn import DPCKNN
from .dynamic_vit import DynamicViT
from .evit import EViT
from .kmedoids import KMedoids
from .mctf import MCTF
from .patch_merger import PatchMerger
from .pitome import PiToMe
from .ppt import PPT
from .sinkhorn import Sinkhorn
from .sit import SiT
from .tome import ToMe
from .topk import TopK

__all__ = [
    'TokenReducer',
    'ATC',
    'ATS',
    'DiffRate',
    'DPCKNN',
    'DynamicViT',
    'EViT',
    'KMedoids',
    'MCTF',
    'PatchMerger',
    'PiToMe',
    'PPT',
    'Sinkhorn',
    'SiT',
    'ToMe',
    'TopK',
]

# a new module registers its classes without a change here
import_modules(__name__, __path__)
