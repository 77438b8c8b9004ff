# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Check the settings of untrusted configs.

When mmengine builds a model it imports unknown names, so ``type='helper'``
runs helper.py; ``conv_type``, ``norm_layer`` and ``_scope_`` are looked up in
the same way. Models download the weights named in their settings. A config
stored in a checkpoint must do none of this, so only registered types from
allowed packages are accepted. A text must be a listed option, a default, or a
value declared by the constructor as a ``Literal``.
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

# limits for lengths and numbers in pipelines, and for numbers in models
MAX_IMAGE_NUMBER, MAX_MODEL_NUMBER = 4096, 2**16
# regular expressions for layer names with a linear matching time
LAYER_PATTERN = re.compile(r'(\.\*)?[\w.\\|()]{1,200}')
# packages with allowed types for models and their parts
MODEL_PACKAGES = (
    'mmclca.models.',
    'mmcv.cnn.bricks.',
    'mmengine.model.base_model.',
    'mmengine.utils.dl_utils.',
    'mmpretrain.models.backbones.',
    'mmpretrain.models.classifiers.',
    'mmpretrain.models.heads.',
    'mmpretrain.models.losses.',
    'mmpretrain.models.necks.',
    'mmpretrain.models.selfsup.',
    'mmpretrain.models.utils.',
    'torch.nn.',
)
# packages with allowed pipeline steps
STEP_PACKAGES = (
    'mmclca.',
    'mmcv.transforms.',
    'mmpretrain.datasets.transforms.',
)
# types to look up other names, read files, or build any type
REFUSED_TYPES = (
    'Albu',
    'Albumentations',
    'CLIPGenerator',
    'GroundingHead',
    'HuggingFaceClassifier',
    'PackMultiTaskInputs',
    'SeqGenerationHead',
    'TIMMBackbone',
    'TimmClassifier',
    'VQAGenerationHead',
)
# required base classes by the path of a setting
BASES: dict[tuple, tuple[type, ...]] = {
    ('model',): (BaseClassifier, LoRAModel),
    ('model', 'module'): (BaseClassifier,),
}
# text options in mmpretrain, mmcv and torch that only select a value or
# branch: first of models, then of transforms
TEXT_OPTIONS = {
    'approximate',
    'arch',
    'bias',
    'ffn_type',
    'fusion_mode',
    'graph_conv_type',
    'interpolate_mode',
    'mode',
    'out_type',
    'padding',
    'reduction',
    'style',
} | {
    'algorithm_keys',
    'backend',
    'color_format',
    'color_type',
    'direction',
    'edge',
    'imdecode_backend',
    'input_key',
    'interpolation',
    'magnitude_key',
    'magnitude_std',
    'meta_keys',
    'padding_mode',
    'policies',
    'second_interpolation',
}
# file clients, which may import modules, and remote code
REFUSED_OPTIONS = ('backend_args', 'file_client_args', 'trust_remote_code')
# extensions of files that may run code if mmengine opens them
UNSAFE_SUFFIXES = ('pickle', 'pkl', 'yaml', 'yml')
# settings without effect on a trained model
TRAINING_OPTIONS = ('_scope_', 'batch_augments', 'init_cfg')


def without_training(settings):
    """Copy settings without ``TRAINING_OPTIONS``, at all depths."""
    if isinstance(settings, dict):
        return {
            name: without_training(value)
            for name, value in settings.items()
            if name not in TRAINING_OPTIONS
        }
    if isinstance(settings, list | tuple):
        return type(settings)(map(without_training, settings))
    return settings


def check_settings(config: dict) -> None:
    """Refuse unsafe settings.

    They could import, download or open something, or take hours or all
    memory.

    Raises:
        Error: Lists all unsafe settings.
    """
    refused = [
        problem
        for name, value in config.items()
        for problem in _describe_unsafe(value, (name,), None)
    ]
    if refused:
        raise Error(f'settings not allowed: {", ".join(refused)}')


def _describe_unsafe(value, path: tuple, owner: type | None) -> Iterator[str]:
    """Describe the unsafe settings in a value, at all depths.

    ``path`` holds the names around the value, ``owner`` is the class with
    this setting.
    """
    dotted = '.'.join(map(str, path))
    if isinstance(value, dict):
        inner_owner = _find_class(value.get('type'))
        for name, inner in value.items():
            if name != 'type':
                yield from _describe_unsafe(inner, (*path, name), inner_owner)
            elif not _allows_type(inner, path):
                yield f'{dotted}.type={inner!r:.80}'
    elif isinstance(value, list | tuple | set):
        if len(value) > MAX_IMAGE_NUMBER:
            yield f'{dotted} ({len(value)} values)'
        for item in value:
            yield from _describe_unsafe(item, path, owner)
    elif isinstance(value, int | float):
        in_pipeline = path[0] == 'test_dataloader' and path[-1] != 'disk_mb'
        limit = MAX_IMAGE_NUMBER if in_pipeline else MAX_MODEL_NUMBER
        if limit < abs(value) < inf:
            yield f'{dotted}={value!r:.80}'
    elif isinstance(value, str) and not _allows_text(value, path[-1], owner):
        yield f'{dotted}={value!r:.80}'
    if path[-1] in REFUSED_OPTIONS and value is not None:
        yield dotted


def _allows_type(name, path: tuple) -> bool:
    """Return whether a type is allowed at a path."""
    if not isinstance(name, str):
        return False
    if path == ('model', 'targets'):  # LoRA: layer names
        return bool(LAYER_PATTERN.fullmatch(name))
    if path == ('test_dataloader', 'dataset'):
        return name == 'CustomDataset'
    if path[0] in ('model', 'data_preprocessor'):
        registered = _find_registered(MODELS, name)
        return _is_in(registered, MODEL_PACKAGES) and _fits(registered, path)
    return _is_in(_find_registered(TRANSFORMS, name), STEP_PACKAGES)


def _is_in(registered, packages: tuple[str, ...]) -> bool:
    """Return whether something registered is a class of these packages."""
    return (
        isinstance(registered, type)
        and registered.__module__.startswith(packages)
        and registered.__name__ not in REFUSED_TYPES
    )


def _fits(model_class: type, path: tuple) -> bool:
    """Return whether a model part fits a path.

    Networks inside layers are refused.
    """
    if path in BASES:
        return issubclass(model_class, BASES[path])
    if path[-1] == 'backbone':
        return not issubclass(model_class, BaseModel)
    return not issubclass(model_class, BaseModel | BaseBackbone)


def _find_class(name) -> type | None:
    """Return the model part or transform with a name, None without one."""
    if not isinstance(name, str):
        return None
    for registry in (MODELS, TRANSFORMS):
        registered = _find_registered(registry, name)
        if isinstance(registered, type):
            return registered
    return None


def _find_registered(registry: Registry | None, name: str):
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


def _allows_text(value: str, name: str, owner: type | None) -> bool:
    """Return whether a text is allowed for a setting.

    It is allowed for a listed option, or if a constructor of the class with
    this setting declares it: as a value of a ``Literal``, or as the default,
    which a model without the setting would have.
    """
    if name in TEXT_OPTIONS:
        is_address = '://' in value or value.startswith(('//', '\\\\'))
        if not is_address and not value.lower().endswith(UNSAFE_SUFFIXES):
            return True
    choices: list = []
    for base in owner.__mro__ if owner is not None else ():
        option = signature(base.__init__).parameters.get(name)
        if option is not None:
            choices += [option.default, *_list_literals(option.annotation)]
    # a default may be of any type, such as a module
    return value in [choice for choice in choices if isinstance(choice, str)]


def _list_literals(annotation) -> list:
    """List the values of all ``Literal`` in an annotation."""
    if get_origin(annotation) is Literal:
        return [*get_args(annotation)]
    parts = get_args(annotation)
    return [value for part in parts for value in _list_literals(part)]
