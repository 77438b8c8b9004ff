# Copyright (c) mmclca contributors. Licensed under Apache-2.0.

from .cam import class_activation_maps
from .figures import HeatMapRow, contact_sheet, draw_heat_maps
from .kept_patches import (
    KeptPatches,
    check_reduces,
    draw_kept_patches,
    find_kept_patches,
    legend,
    plot_kept_patches,
)
from .pooling import class_attention, pooled, pooling_maps
from .reconstructions import reconstruction_figure, reconstructions
from .rollout import rollout

__all__ = [
    'HeatMapRow',
    'KeptPatches',
    'check_reduces',
    'class_activation_maps',
    'class_attention',
    'contact_sheet',
    'draw_heat_maps',
    'draw_kept_patches',
    'legend',
    'pooled',
    'pooling_maps',
    'reconstruction_figure',
    'reconstructions',
    'rollout',
    'find_kept_patches',
    'plot_kept_patches',
]
