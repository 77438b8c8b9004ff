# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from .losses import (
    Compared,
    DeiTDistillation,
    LogitDistillation,
    TokenDistillation,
    deit_distillation,
)
from .teacher import Teacher

__all__ = [
    'Compared',
    'DeiTDistillation',
    'LogitDistillation',
    'Teacher',
    'TokenDistillation',
    'deit_distillation',
]
