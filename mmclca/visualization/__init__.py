# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from .cached_tokens import Cached, cached_by_stage
from .cam import class_activation_maps
from .contact_sheet import contact_sheet
from .heat_maps import Heated, draw_heat_maps, paint_map
from .painting import kinds, paint
from .patch_maps import assignment_maps, stage_weights, survivor_maps
from .picture_grid import to_array
from .pooling import pooled, pooling_maps
from .reductions import (
    Reduced,
    check_reduces,
    draw_reductions,
    reduced,
    reductions_figure,
    stage_titles,
)
from .rollout import rollout

__all__ = [
    'Cached',
    'Heated',
    'Reduced',
    'assignment_maps',
    'cached_by_stage',
    'check_reduces',
    'class_activation_maps',
    'contact_sheet',
    'draw_heat_maps',
    'draw_reductions',
    'kinds',
    'paint',
    'paint_map',
    'pooled',
    'pooling_maps',
    'reduced',
    'reductions_figure',
    'rollout',
    'stage_titles',
    'stage_weights',
    'survivor_maps',
    'to_array',
]
