# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from .encoder_teacher import EncoderTeacher
from .layers import (
    AttentionDistillation,
    HiddenDistillation,
    LayerDistillation,
    attention_distillation,
)
from .losses import (
    Compared,
    DeiTDistillation,
    LogitDistillation,
    TokenDistillation,
    deit_distillation,
)
from .teacher import Teacher

__all__ = [
    'AttentionDistillation',
    'Compared',
    'DeiTDistillation',
    'EncoderTeacher',
    'HiddenDistillation',
    'LayerDistillation',
    'LogitDistillation',
    'Teacher',
    'TokenDistillation',
    'attention_distillation',
    'deit_distillation',
]
