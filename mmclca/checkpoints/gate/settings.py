# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Check the settings of untrusted configs.

When mmengine builds a model it imports unknown names, so ``type='helper'``
runs helper.py; ``conv_type``, ``norm_layer`` and ``_scope_`` are looked up in
the same way. Models download the weights named in their settings. A config
stored in a checkpoint must do none of this, so only registered types from
allowed packages are accepted. A text must be a listed option, a default, or a
value that the constructor declares as a ``Literal``.
"""

import re
from collections.abc import Iterator
from inspect import signature
from math import inf
from typing import Literal, get_args, get_origin

from mmengine.model import BaseModel
from mmengine.registry import Registry
from mmpretrain.models import BaseClassifier
from mmpretrain.models.backbones.base_backbone import BaseBackbone
from mmpretrain.models.peft import LoRAModel

from mmclca.errors import Error
from mmclca.registry import MODELS, TRANSFORMS

# limits for numbers in pipelines and lengths, and for numbers in models
LARGEST, MOST = 4096, 2**16
# regular expressions for layer names with a linear matching time
TARGET = re.compile(r'(\.\*)?[\w.\\|()]{1,200}')


def _below(package: str, modules: str) -> list[str]:
    """Return prefixes of type names, one per module of a package."""
    return [f'{package}.{module}.' for module in modules.split()]


# packages with allowed types for models and their parts
PACKAGES = (
    *_below('mmclca', 'models'),
    *_below('mmcv', 'cnn.bricks'),
    *_below('mmengine', 'model.base_model utils.dl_utils'),
    *_below('mmpretrain.models', 'backbones classifiers heads losses necks'),
    *_below('mmpretrain.models', 'selfsup utils'),
    *_below('torch', 'nn'),
)
# packages with allowed pipeline steps
STEPS = ('mmclca.', 'mmcv.transforms.', 'mmpretrain.datasets.transforms.')
# types that look up other names, read files, or build any type
NO_TYPES = (
    *('Albu', 'Albumentations', 'PackMultiTaskInputs', 'TIMMBackbone'),
    *('HuggingFaceClassifier', 'TimmClassifier', 'CLIPGenerator'),
    *('GroundingHead', 'SeqGenerationHead', 'VQAGenerationHead'),
)
# required base classes by place
BASES = {
    ('model',): (BaseClassifier, LoRAModel),
    ('model', 'module'): BaseClassifier,
}
# string options in mmpretrain, mmcv and torch
TEXTS = (
    # model options that only select a value or branch
    *('arch', 'approximate', 'bias', 'ffn_type', 'fusion_mode'),
    *('graph_conv_type', 'interpolate_mode', 'mode', 'out_type', 'padding'),
    *('reduction', 'style'),
    # transform options
    *('algorithm_keys', 'backend', 'color_format', 'color_type', 'direction'),
    *('edge', 'imdecode_backend', 'input_key', 'interpolation'),
    *('magnitude_key', 'magnitude_std', 'meta_keys', 'padding_mode'),
    *('policies', 'second_interpolation'),
)
# file clients, which may import modules, and remote code
NEVER = ('backend_args', 'file_client_args', 'trust_remote_code')
# extensions of files that may run code if mmengine opens them
UNSAFE_FILES = ('pickle', 'pkl', 'yaml', 'yml')
# settings without effect on a trained model
OF_TRAINING = ('_scope_', 'batch_augments', 'init_cfg')


def without_training(settings):
    """Copy settings without ``OF_TRAINING``, at all depths."""
    if isinstance(settings, dict):
        return {
            name: without_training(value)
            for name, value in settings.items()
            if name not in OF_TRAINING
        }
    if isinstance(settings, list | tuple):
        return type(settings)(map(without_training, settings))
    return settings


def check_settings(config: dict) -> None:
    """Raise ``Error`` with all unsafe settings.

    Unsafe settings could import, download or open something, or take hours
    or all memory.
    """
    refused = [
        problem
        for name, value in config.items()
        for problem in _unsafe(value, (name,))
    ]
    if refused:
        raise Error(f'settings not allowed: {", ".join(refused)}')


def _unsafe(value, place: tuple, owner=None) -> Iterator[str]:
    """Describe the unsafe settings in a value, at all depths.

    ``place`` is the path of names to the value, ``owner`` is the type of the
    dict around it.
    """
    where = '.'.join(map(str, place))
    if isinstance(value, dict):
        for name, inner in value.items():
            if name != 'type':
                yield from _unsafe(inner, (*place, name), value.get('type'))
            elif not _allows_type(inner, place):
                yield f'{where}.type={inner!r:.80}'
    elif isinstance(value, list | tuple | set):
        if len(value) > LARGEST:
            yield f'{where} ({len(value)} values)'
        for inner in value:
            yield from _unsafe(inner, place, owner)
    elif isinstance(value, int | float):
        of_image = place[0] == 'test_dataloader' and place[-1] != 'disk_mb'
        if (LARGEST if of_image else MOST) < abs(value) < inf:
            yield f'{where}={value!r:.80}'
    elif isinstance(value, str) and not _allows_text(value, place[-1], owner):
        yield f'{where}={value!r:.80}'
    if place[-1] in NEVER and value is not None:
        yield where


def _allows_type(name, place: tuple) -> bool:
    """Return whether a type is allowed at a place."""
    if place == ('model', 'targets'):  # LoRA: layer names
        return isinstance(name, str) and bool(TARGET.fullmatch(name))
    if place == ('test_dataloader', 'dataset'):
        return name == 'CustomDataset'
    in_model = place[0] in ('model', 'data_preprocessor')
    registry, packages = (
        (MODELS, PACKAGES) if in_model else (TRANSFORMS, STEPS)
    )
    kind = _find(registry, name) if isinstance(name, str) else None
    return (
        isinstance(kind, type)
        and kind.__module__.startswith(packages)
        and kind.__name__ not in NO_TYPES
        and (not in_model or _fits(kind, place))
    )


def _fits(kind: type, place: tuple) -> bool:
    """Return whether a model part fits a place.

    Networks inside layers are refused.
    """
    if place in BASES:
        return issubclass(kind, BASES[place])
    is_backbone = place[-1] == 'backbone'
    return not issubclass(kind, BaseModel) and (
        is_backbone or not issubclass(kind, BaseBackbone)
    )


def _find(registry: Registry, name: str):
    """Look up a type as mmengine does in scope ``mmpretrain``.

    Unlike ``Registry.get``, this never imports a part of the name.
    """
    scope, name = Registry.split_scope_key(name)
    scopes = ('mmpretrain', 'mmengine') if scope is None else (scope,)
    while registry is not None:
        registry.import_from_location()
        if registry.scope in scopes and name in registry.module_dict:
            return registry.module_dict[name]
        registry = registry.parent
    return None


def _allows_text(text: str, name: str, owner) -> bool:
    """Return whether a text is allowed for a setting."""
    elsewhere = '://' in text or text.startswith(('//', '\\\\'))
    unsafe = text.lower().endswith(UNSAFE_FILES)
    listed = name in TEXTS and not elsewhere and not unsafe
    # a default may be of any type, such as a module
    return listed or any(
        isinstance(choice, str) and choice == text
        for choice in _choices(owner, name)
    )


def _choices(owner, name: str) -> Iterator:
    """Yield the values that constructors declare for a setting.

    These are the values of a ``Literal`` and the default, which a model
    without the setting would have.
    """
    kind = None
    if isinstance(owner, str):
        kind = _find(MODELS, owner) or _find(TRANSFORMS, owner)
    for base in kind.__mro__ if isinstance(kind, type) else ():
        setting = signature(base.__init__).parameters.get(name)
        if setting is not None:
            yield setting.default
            yield from _literals(setting.annotation)


def _literals(annotation) -> Iterator:
    """Yield the values of all ``Literal`` in an annotation."""
    if get_origin(annotation) is Literal:
        yield from get_args(annotation)
    else:
        for part in get_args(annotation):
            yield from _literals(part)
