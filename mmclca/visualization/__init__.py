# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from .cached_tokens import Cached, cached_by_stage
from .cam import class_activation_maps
from .contact_sheet import contact_sheet
from .curves import draw_curves, read_scalars
from .heat_maps import Heated, draw_heat_maps, paint_map
from .painting import kinds, paint
from .reductions import (
    Reduced,
    draw_reductions,
    reduced,
    reductions_figure,
    to_array,
    weights_by_stage,
)
from .rollout import rollout
from .survivors import (
    assignment_maps,
    draw_survivors,
    stage_weights,
    survivor_maps,
)

__all__ = [
    'Cached',
    'Heated',
    'Reduced',
    'assignment_maps',
    'cached_by_stage',
    'class_activation_maps',
    'contact_sheet',
    'draw_curves',
    'draw_heat_maps',
    'draw_reductions',
    'draw_survivors',
    'kinds',
    'paint',
    'paint_map',
    'read_scalars',
    'reduced',
    'reductions_figure',
    'rollout',
    'stage_weights',
    'survivor_maps',
    'to_array',
    'weights_by_stage',
]
