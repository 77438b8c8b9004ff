# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from mmclca.datasets.image_files import find_images

from .inferencer import TokenReductionInferencer
from .loading import load_classifier
from .output import (
    best_classes,
    draw_prediction,
    picture_paths,
    write_json,
    write_table,
)
from .probe import Probe

__all__ = [
    'Probe',
    'TokenReductionInferencer',
    'best_classes',
    'draw_prediction',
    'find_images',
    'load_classifier',
    'picture_paths',
    'write_table',
    'write_json',
]
