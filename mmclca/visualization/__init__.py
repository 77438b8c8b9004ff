# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from .contact_sheet import contact_sheet
from .curves import draw_curves, read_scalars
from .survivors import draw_survivors, survivor_maps

__all__ = [
    'contact_sheet',
    'draw_curves',
    'draw_survivors',
    'read_scalars',
    'survivor_maps',
]
