# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Stored configs may use every option of every registered class."""

from collections.abc import Sequence
from inspect import Parameter, signature
from types import UnionType
from typing import Literal, Union, get_args, get_origin

from mmpretrain.models.backbones.base_backbone import BaseBackbone

from mmclca.checkpoints.gate.settings import OF_TRAINING, check_settings
from mmclca.registry import MODELS, TRANSFORMS

# texts that name a file, another model or a class, and are refused
NAMES = ('checkpoint', 'folder', 'prototype')
# names of architectures and their own tables
ARCH = dict(CaiT='xxs36', PatchConvNet='s120', ResMLP='s24')
LEAST = {int: 2, float: 0.25, bool: True, dict: dict(a=1)}


def list_classes():
    for registry in (MODELS, TRANSFORMS):
        registry.import_from_location()
        for kind in registry.module_dict.values():
            if kind.__module__.startswith('mmclca.'):
                yield registry, kind


def list_options(kind):
    """Return all named options by name, those of its bases included."""
    options = {}
    for base in kind.__mro__:
        for name, option in signature(base.__init__).parameters.items():
            if option.kind in (
                Parameter.POSITIONAL_OR_KEYWORD,
                Parameter.KEYWORD_ONLY,
            ):
                options.setdefault(name, option)
    return options.values()


def list_values(annotation):
    """Yield legal values of an annotation; a text is never one of them."""
    kind = get_origin(annotation)
    if kind is Literal:
        yield from get_args(annotation)
    elif kind in (UnionType, Union):
        for part in get_args(annotation):
            yield from list_values(part)
    elif annotation is type(None):
        yield None
    elif isinstance(kind or annotation, type):
        kind = kind or annotation
        if issubclass(kind, list | tuple | Sequence) and kind is not str:
            inner = [
                x
                for part in get_args(annotation)[:1]
                for x in list_values(part)
            ]
            yield inner[:1]
        yield from (LEAST[kind] for kind in [kind] if kind in LEAST)


def refusal(registry, kind, name, value):
    """Return the message of the gate about an option of a class."""
    settings = {'type': f'mmclca.{kind.__name__}', name: value}
    if registry is TRANSFORMS:
        config = dict(
            test_dataloader=dict(
                dataset=dict(type='CustomDataset', pipeline=[settings])
            )
        )
    else:
        is_backbone = issubclass(kind, BaseBackbone)
        place = 'backbone' if is_backbone else 'part'
        config = dict(model={place: settings})
    try:
        check_settings(config)
    except ValueError as error:
        return str(error)
    return ''


CLASSES = [*list_classes()]


def test_legal_values_of_all_options_are_allowed():
    for registry, kind in CLASSES:
        for option in list_options(kind):
            name = option.name
            if name in ('self', *NAMES, *OF_TRAINING):
                continue
            values = [*list_values(option.annotation)]
            if name == 'arch':
                values.append(ARCH.get(kind.__name__, 'small'))
            if isinstance(option.default, str | int | float):
                values.append(option.default)
            for value in values:
                found = refusal(registry, kind, name, value)
                assert f'.{name}' not in found, (kind, name, value)


def test_texts_are_declared_as_literals():
    """An option with the type ``str`` would be refused, or allow any text."""
    for _, kind in CLASSES:
        for option in signature(kind.__init__).parameters.values():
            parts = get_args(option.annotation) or (option.annotation,)
            known = ('arch', 'model', *NAMES)
            assert str not in parts or option.name in known, (kind, option)


def test_other_texts_are_refused():
    for registry, kind in CLASSES:
        for option in list_options(kind):
            name, literal = option.name, get_origin(option.annotation)
            if literal is not Literal or name in ('mode', 'reduction'):
                continue
            for text in ('helper', 'http://a/b.py', '../x.pkl'):
                message = refusal(registry, kind, name, text)
                assert f'.{name}=' in message, (kind, name)
