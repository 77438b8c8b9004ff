# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Stored configs may use every option of every registered class."""

from collections.abc import Sequence
from inspect import Parameter, signature
from numbers import Number
from types import UnionType
from typing import Literal, Union, get_args, get_origin

import pytest
from mmengine.config import Config
from mmengine.model import BaseModel
from mmpretrain.models.backbones.base_backbone import BaseBackbone

from mmclca.checkpoints.checkpoint import Checkpoint
from mmclca.checkpoints.gate.settings import TRAINING_OPTIONS, check_settings
from mmclca.checkpoints.gate.stored_config import UNUSED, read_stored_parts
from mmclca.models.reduction.reducers.base import BackboneShape
from mmclca.registry import MODELS, TRANSFORMS

# texts that name a file, another model or a class, and are refused
NAMES = ('checkpoint', 'folder', 'prototype')
# networks that are no classifiers, so nothing predicts with them
NO_CLASSIFIERS = {'TokenReductionRetriever', 'DistilledMAE', 'MIRL'}
# names of architectures and their own tables
ARCH = dict(CaiT='xxs36', PatchConvNet='s120', ResMLP='s24')
# texts of mmpretrain's options, which have no annotation
TEXTS = dict(
    arch=['small'],
    bias=[True],
    interpolate_mode=['bilinear'],
    out_type=['raw', 'avg_featmap'],
)
# options that have declared texts here, and any text in mmpretrain
LISTED = ('mode', 'out_type', 'reduction')
EXAMPLES = {int: 6, float: 0.25, Number: 0.5, bool: True, dict: dict(eps=0.25)}
# options without a plain value or an annotation, and a single legal value
WITHOUT_VALUES = {
    ('ShuffledView', 'transforms'),
    ('CacheImages', 'transforms'),
    ('MCTF', 'variant'),
    ('MIRLDecoders', 'encoder'),
}
MODEL = dict(type='ImageClassifier', backbone=dict(type='LeNet5'))


def list_classes():
    for registry in (MODELS, TRANSFORMS):
        registry.import_from_location()
        for name, registered in registry.module_dict.items():
            if registered.__module__.startswith('mmclca.'):
                yield pytest.param(registry, registered, id=name)


CLASSES = [*list_classes()]


def list_options(registered):
    """Return all named options by name, those of its bases included.

    The sizes that a backbone passes to its reducer are no option.
    """
    options = {}
    for base in registered.__mro__:
        for name, option in signature(base.__init__).parameters.items():
            if name != 'self' and option.kind in (
                Parameter.POSITIONAL_OR_KEYWORD,
                Parameter.KEYWORD_ONLY,
            ):
                options.setdefault(name, option)
    return {
        name: option
        for name, option in options.items()
        if option.annotation is not BackboneShape
    }


def list_values(annotation):
    """Yield legal values of an annotation; of texts, only declared ones."""
    origin = get_origin(annotation)
    if origin is Literal:
        yield from get_args(annotation)
    elif origin in (UnionType, Union):
        for part in get_args(annotation):
            yield from list_values(part)
    elif isinstance(origin or annotation, type):
        declared = origin or annotation
        if declared in EXAMPLES:
            yield EXAMPLES[declared]
        elif issubclass(declared, list | tuple | Sequence) and (
            declared is not str
        ):
            inner = get_args(annotation)[:1] or (int,)
            items = [*list_values(inner[0])][:1]
            yield tuple(items) if declared is tuple else items


def list_changes(registered, option):
    """List legal values of an option other than the default."""
    values = [*list_values(option.annotation)]
    if option.annotation is Parameter.empty:
        values += [*list_values(type(option.default))]
    if option.name == 'arch' and registered.__name__ in ARCH:
        values.append(ARCH[registered.__name__])
    else:
        values += TEXTS.get(option.name, [])
    if isinstance(option.default, bool):
        values.append(not option.default)
    return [x for x in values if repr(x) != repr(option.default)]


def put(registry, registered, settings):
    """Return a config with the settings of a class at their place."""
    settings = {'type': f'mmclca.{registered.__name__}', **settings}
    if registry is TRANSFORMS:
        dataset = dict(type='CustomDataset', pipeline=[settings])
        return dict(test_dataloader=dict(dataset=dataset))
    if issubclass(registered, BaseBackbone):
        return dict(model=dict(MODEL, backbone=settings))
    if issubclass(registered, BaseModel):
        return dict(model=settings)
    return dict(model=dict(MODEL, head=settings))


@pytest.mark.parametrize('registry, registered', CLASSES)
def test_stored_options_are_read_with_equal_values(registry, registered):
    if registered.__name__ in NO_CLASSIFIERS:
        message = read_refusal(put(registry, registered, {}))
        assert f"model.type='mmclca.{registered.__name__}'" in message
        return
    ignored = {*TRAINING_OPTIONS, *UNUSED, *NAMES}
    changes = {
        name: list_changes(registered, option)
        for name, option in list_options(registered).items()
        if name not in ignored
    }
    for i in range(max(map(len, changes.values()), default=1)):
        settings = {
            name: values[min(i, len(values) - 1)]
            for name, values in changes.items()
            if values
        }
        config = put(registry, registered, settings)
        text = Config(config).pretty_text
        stored = dict(meta=dict(cfg=text), state_dict={})
        assert read_stored_parts(Checkpoint(stored, 'w.pth')) == config
    for name, values in changes.items():
        assert values or (registered.__name__, name) in WITHOUT_VALUES, name


def read_refusal(config):
    """Return the message of the gate about a config, '' if it is allowed."""
    try:
        check_settings(config)
    except ValueError as error:
        return str(error)
    return ''


def test_texts_are_declared_as_literals():
    """An option with the type ``str`` would be refused, or allow any text."""
    for _, registered in (case.values for case in CLASSES):
        for option in signature(registered.__init__).parameters.values():
            parts = get_args(option.annotation) or (option.annotation,)
            known = ('arch', 'model', *NAMES)
            is_known = option.name in known
            assert str not in parts or is_known, (registered, option)


def test_other_texts_are_refused():
    for registry, registered in (case.values for case in CLASSES):
        for name, option in list_options(registered).items():
            literal = get_origin(option.annotation)
            if literal is not Literal or name in LISTED:
                continue
            for text in ('helper', 'http://a/b.py', '../x.pkl'):
                config = put(registry, registered, {name: text})
                message = read_refusal(config)
                assert f'.{name}=' in message, (registered, name)
