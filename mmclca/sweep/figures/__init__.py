# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from .costs import draw_costs
from .gradients import draw_gradients
from .methods import draw_methods
from .parts import draw_parts
from .write import write_figures

__all__ = [
    'draw_costs',
    'draw_gradients',
    'draw_methods',
    'draw_parts',
    'write_figures',
]
