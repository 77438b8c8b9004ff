# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from .inferencer import TokenReductionInferencer
from .output import best_classes, write_csv, write_json
from .pictures import draw_prediction, picture_paths
from .probe import Probe
from .sources import find_images

__all__ = [
    'Probe',
    'TokenReductionInferencer',
    'best_classes',
    'draw_prediction',
    'find_images',
    'picture_paths',
    'write_csv',
    'write_json',
]
