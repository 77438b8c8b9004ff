# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from .contact_sheet import contact_sheet
from .curves import draw_curves, read_scalars
from .reductions import Reduced, draw_reductions, weights_by_stage
from .survivors import (
    assignment_maps,
    draw_survivors,
    stage_weights,
    survivor_maps,
)

__all__ = [
    'Reduced',
    'assignment_maps',
    'contact_sheet',
    'draw_curves',
    'draw_reductions',
    'draw_survivors',
    'read_scalars',
    'stage_weights',
    'survivor_maps',
    'weights_by_stage',
]
