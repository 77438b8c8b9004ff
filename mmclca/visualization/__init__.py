# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import mmclca.registry  # noqa: F401, quiet, so before mmpretrain

from .cam import class_activation_maps
from .figures import HeatMapRow, contact_sheet, draw_heat_maps
from .pooling import class_attention, pooled, pooling_maps
from .reconstructions import reconstruction_figure, reconstructions
from .rollout import rollout
from .survivors import (
    Survivors,
    check_reduces,
    draw_survivors,
    legend,
    survivors,
    survivors_figure,
)

__all__ = [
    'HeatMapRow',
    'Survivors',
    'check_reduces',
    'class_activation_maps',
    'class_attention',
    'contact_sheet',
    'draw_heat_maps',
    'draw_survivors',
    'legend',
    'pooled',
    'pooling_maps',
    'reconstruction_figure',
    'reconstructions',
    'rollout',
    'survivors',
    'survivors_figure',
]
