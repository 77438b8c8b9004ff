# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Whether a teacher can be had and fits its student."""

from collections.abc import Collection
from numbers import Real

from mmengine.logging import MMLogger
from mmpretrain.models.classifiers import ImageClassifier
from torch import nn

from ..backbones import as_reducible, reduces


def check_options(options, known: Collection[str]) -> None:
    """ValueError unless these are the options of a teacher, all known."""
    needed = {'config', 'checkpoint'}
    if not isinstance(options, dict) or not needed <= options.keys():
        raise ValueError(
            f'teacher={options!r} is not allowed: give a dict with config '
            'and checkpoint'
        )
    unknown = sorted(options.keys() - set(known))
    if unknown:
        raise ValueError(
            f'teacher: unknown {", ".join(unknown)}; there are '
            f'{", ".join(known)}'
        )
    if not isinstance(options['checkpoint'], str):
        raise ValueError(
            f'teacher: checkpoint={options["checkpoint"]!r} is not the path '
            'or address of trained weights'
        )


def check_numbers(logit_weight, token_weight, temperature) -> None:
    """ValueError unless these weights and temperature are allowed."""
    numbers = (logit_weight, token_weight, temperature)
    if not all(isinstance(number, Real) for number in numbers) or (
        min(logit_weight, token_weight) < 0 or temperature <= 0
    ):
        raise ValueError(
            f'teacher: logit_weight={logit_weight!r} and token_weight='
            f'{token_weight!r} must not be negative, temperature='
            f'{temperature!r} must be above 0'
        )


def check_kind(teacher: nn.Module) -> None:
    """ValueError unless it is a vision transformer with all its tokens, and
    gives class scores."""
    if not (isinstance(teacher, ImageClassifier) and teacher.with_head):
        raise ValueError(
            f'teacher: {type(teacher).__name__} is no ImageClassifier with a '
            'head'
        )
    backbone = teacher.backbone
    try:
        as_reducible(backbone)
    except ValueError as error:
        raise ValueError(f'teacher: {error}') from error
    if reduces(backbone):
        raise ValueError(
            f'teacher: {type(backbone.reducer).__name__} reduces its tokens; '
            'a teacher keeps all: take the config without a reducer'
        )


def check_fit(teacher: nn.Module, student, token_weight: float) -> None:
    """ValueError unless a student can learn from the teacher."""
    backbones = teacher.backbone, student.backbone
    classes = [head.num_classes for head in (teacher.head, student.head)]
    pairs = {
        'classes (head.num_classes)': classes,
        'normalization (data_preprocessor)': _normalizations(teacher, student),
    }
    if token_weight:
        pairs['channels (embed_dims)'] = [b.embed_dims for b in backbones]
        pairs['patch_size'] = [b.stride for b in backbones]
    for what, (theirs, ours) in pairs.items():
        if theirs != ours:
            hint = ''
            if what.startswith(('channels', 'patch')):
                hint = '; token_weight=0 compares class scores only'
            raise ValueError(
                f'teacher: it has {what} {theirs}, the student {ours}; they '
                f'must be the same{hint}'
            )


def _normalizations(*models: nn.Module) -> list:
    """Mean and deviation of each model; two None where one has no say."""
    found = [
        dict(
            mean=p.mean.flatten().tolist(),
            std=p.std.flatten().tolist(),
            to_rgb=p.to_rgb,
        )
        for p in (model.data_preprocessor for model in models)
        if p._enable_normalize
    ]
    if len(found) == 1:
        MMLogger.get_current_instance().warning(
            'teacher: only one of teacher and student says how images are '
            'normalized; both see them as the student does'
        )
    return found if len(found) == len(models) else [None] * len(models)
