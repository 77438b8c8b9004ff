# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""The config and the class names that a checkpoint file holds.

mmengine runs a config file as Python. A text inside a checkpoint is of
whoever made the file, as its tensors are: it is only read, and what it may
say is in a few lists.

mmengine imports what it does not know: ``type='helper'`` runs helper.py, and
so do ``conv_type``, ``norm_layer``, ``_scope_`` and others that types look
up. Models fetch weights that a setting names. What came with a download must
do none of this, so whatever is not listed here is refused: types by the
setting that holds them, and texts by their name. Of datasets, which open
files and download, only the test pipeline is read.
"""

import ast
import io
import re
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from math import inf, nan

import mmpretrain
import torch
from mmengine.config import Config
from mmengine.logging import MMLogger
from mmengine.model import BaseModel
from mmengine.registry import Registry, init_default_scope
from mmpretrain.models import BaseClassifier
from mmpretrain.models.backbones.base_backbone import BaseBackbone
from mmpretrain.models.peft import LoRAModel
from torch import Tensor

from mmclca.registry import MODELS, TRANSFORMS
from mmclca.version import __version__

from .opening import dict_in
from .releases import WeightSource, heads_of_release, source_of, weights_of
from .sizes import building_within

# what a trained model does without; its teacher is in other files
UNUSED = ('pretrained', 'teacher', 'train_cfg')
# characters of a config, of which a usual one has 20,000
LONGEST, DEEPEST = 2**17, 100
# numbers in a pipeline and lengths of lists; numbers in a model
LARGEST, MOST = 4096, 2**16
# expressions for the names of layers that are matched in linear time
TARGET = re.compile(r'(\.\*)?[\w.\\|()]{1,200}')


def stored_config(checkpoint: dict) -> Config:
    """Read the config that a model was trained with.

    The config is parsed as plain settings and never executed. Only the
    model, its data preprocessor and the pipeline of the test dataset are
    used, so a file cannot make the program open a dataset.

    Raises:
        ValueError: If there is no config, or it is more than plain settings;
            see :func:`mmclca.checkpoints.stored.check_settings`.
        CheckpointError: If the model does not match the weights.
    """
    remedy = 'pass the config file (predict.py: --config CONFIG)'
    if stored_text(checkpoint) is None:
        raise ValueError(f'{_name(checkpoint)} has no config; {remedy}')
    parts = _read(checkpoint, usable_parts, f'if you trust it, {remedy}')
    config = Config(dict(parts, default_scope='mmpretrain'))
    if 'model' in config:
        _check_model(deepcopy(config), checkpoint)  # constructors change it
    return config


def _check_model(config: Config, checkpoint: dict) -> None:
    """Refuse a model that the weights of its file do not fill."""
    init_default_scope('mmpretrain')
    defaults = dict(data_preprocessor=config.get('data_preprocessor'))
    with building_within(weights_of(checkpoint), _name(checkpoint)):
        MODELS.build(config.model, default_args=defaults)


def stored_backbone(checkpoint: dict) -> dict | None:
    """Read the settings of the backbone in a stored config.

    They are parsed as in :func:`stored_config`; the rest of the config is
    ignored.

    Returns:
        dict | None: None without a config.

    Raises:
        ValueError: If there is no backbone in it, or it is more than plain
            settings.
    """
    if stored_text(checkpoint) is None:
        return None
    remedy = (
        'store plain settings in it with publish_model.py --config CONFIG, or '
        'use the weights alone'
    )
    return _read(checkpoint, _backbone, remedy)['model']['backbone']


def stored_text(checkpoint: dict) -> str | None:
    """Find the text of the config in a checkpoint, None without.

    It is whatever who made the file wrote.
    """
    text = dict_in(checkpoint, 'meta').get('cfg')
    return text if isinstance(text, str) else None


def stored_classes(checkpoint: dict) -> list[str] | None:
    """Read the class names in a checkpoint, None without.

    Raises:
        ValueError: If they are no list of texts.
    """
    classes = dict_in(dict_in(checkpoint, 'meta'), 'dataset_meta')
    classes = classes.get('classes')
    if classes is not None:
        check_names(classes, _name(checkpoint))
    return classes


def checkpoint_bytes(
    weights: dict[str, Tensor], text: str | None, classes: Sequence[str] | None
) -> bytes:
    """Return a checkpoint as mmengine writes it, which needs no other file."""
    theirs = mmpretrain.__version__
    meta = dict(mmclca_version=__version__, mmpretrain_version=theirs)
    if text is not None:
        meta['cfg'] = text
    if classes is not None:
        meta['dataset_meta'] = dict(classes=tuple(classes))
    buffer = io.BytesIO()
    torch.save(dict(meta=meta, state_dict=weights), buffer)
    return buffer.getvalue()


def check_names(classes, source: str) -> None:
    """Refuse class names that are not a list or tuple of strings."""
    if not isinstance(classes, list | tuple) or not all(
        isinstance(name, str) for name in classes
    ):
        raise ValueError(
            f'{source}: class names must be a list of strings, such as '
            "['ash', 'elm']; correct them, or use the weights alone"
        )


def _name(checkpoint: dict) -> str:
    return source_of(weights_of(checkpoint)).name


def _read(
    checkpoint: dict, choose: Callable[[dict], dict], remedy: str
) -> dict:
    """Choose parts of a stored config, and check them."""
    try:
        parts = choose(parse_plain_config(stored_text(checkpoint)).to_dict())
        check_settings(parts)
    except ValueError as error:
        raise ValueError(
            f'the config in {_name(checkpoint)} is refused, because stored '
            f'configs are never executed: {error}; {remedy}'
        ) from error
    return parts


def _backbone(config: dict) -> dict:
    """Take the one part of a config of which a backbone is built."""
    backbone = _settings(_settings(config, 'model'), 'backbone')
    return without_training(dict(model=dict(backbone=backbone)))


def usable_parts(config: dict) -> dict:
    """Take the parts of which models and images are made."""
    parts = {
        name: dict(_settings(config, name))
        for name in ('model', 'data_preprocessor')
        if config.get(name) is not None
    }
    model = parts.get('model', {})
    if isinstance(model.get('module'), dict):  # of LoRA
        model['module'] = _without_unused(model['module'])
    parts = dict(parts, model=_without_unused(model)) if model else parts
    if config.get('test_dataloader') is not None:
        dataset = _settings(_settings(config, 'test_dataloader'), 'dataset')
        steps = dataset.get('pipeline', [])
        # a type that opens nothing, as it names no images
        dataset = dict(type='CustomDataset', pipeline=steps)
        parts['test_dataloader'] = dict(dataset=dataset)
    return without_training(parts)


def _without_unused(model: dict) -> dict:
    return {name: x for name, x in model.items() if name not in UNUSED}


def _settings(config: dict, name: str) -> dict:
    if not isinstance(config.get(name), dict):
        raise ValueError(f'{name} is not a dict')
    return config[name]


NUMBERS = dict(inf=inf, nan=nan)


def parse_plain_config(text: str) -> Config:
    """Parse the output of ``Config.pretty_text``.

    Returns:
        Config: The settings.

    Raises:
        ValueError: If the text contains anything but settings.
    """
    if len(text) > LONGEST:
        raise ValueError(f'{len(text)} characters exceed the limit {LONGEST}')
    try:
        tree = ast.parse(text)
        _check_depth(tree)
        return Config(dict(map(_assignment, tree.body)))
    except SyntaxError as error:
        raise ValueError(f'line {error.lineno} is not a setting') from error
    except KeyError as error:  # a name reserved by mmengine
        raise ValueError(error.args[0]) from error
    # a key that is a list; too many brackets or signs for Python
    except (MemoryError, RecursionError, TypeError) as error:
        problem = f'{type(error).__name__}: {error}'
        raise ValueError(f'not plain settings ({problem})') from error


def _check_depth(tree: ast.AST) -> None:
    """Refuse settings too deep for recursive code."""
    nodes = [tree]
    for _ in range(DEEPEST):
        nodes = [one for node in nodes for one in ast.iter_child_nodes(node)]
    if nodes:
        raise ValueError('the settings are nested too deeply')


def _assignment(node: ast.stmt) -> tuple:
    if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
        return node.targets[0].id, _value(node.value)
    raise _refusal(node)


def _value(node: ast.expr):
    match node:
        case ast.Constant(value=str() | int() | float() | None):
            return node.value
        case ast.Name() if node.id in NUMBERS:
            return NUMBERS[node.id]
        case ast.UnaryOp(op=ast.USub()):
            return -_value(node.operand)
        case ast.List():
            return [*map(_value, node.elts)]
        case ast.Tuple():
            return (*map(_value, node.elts),)
        case ast.Set():
            return {*map(_value, node.elts)}
        case ast.Dict() if None not in node.keys:
            pairs = zip(node.keys, node.values, strict=True)
            return {_value(key): _value(value) for key, value in pairs}
        case ast.Call(func=ast.Name(id='dict')):
            return _call_of_dict(node)
    raise _refusal(node)


def _call_of_dict(node: ast.Call) -> dict:
    named = {word.arg: _value(word.value) for word in node.keywords}
    if len(node.args) > 1 or None in named:
        raise _refusal(node)
    start = _value(node.args[0]) if node.args else {}
    return {**start, **named}


def _refusal(node: ast.AST) -> ValueError:
    code = ' '.join(ast.unparse(node).split())
    return ValueError(f'line {node.lineno} is not a setting: {code[:60]}')


def _below(package: str, modules: str) -> list[str]:
    return [f'{package}.{module}.' for module in modules.split()]


# modules whose types a model may use
PACKAGES = (
    *_below('mmclca', 'models'),
    *_below('mmcv', 'cnn.bricks'),
    *_below('mmengine', 'model.base_model utils.dl_utils'),
    *_below('mmpretrain.models', 'backbones classifiers heads losses necks'),
    *_below('mmpretrain.models', 'selfsup utils'),
    *_below('torch', 'nn'),
)
# and a step of a pipeline
STEPS = (
    *('mmclca.datasets.decoding', 'mmclca.datasets.image_cache'),
    'mmclca.models.baselines.shuffled_view',
    *('mmcv.transforms.', 'mmpretrain.datasets.transforms.'),
)
# they look up what others name, read files, or build types of any name
NO_TYPES = (
    *('Albu', 'Albumentations', 'PackMultiTaskInputs', 'TIMMBackbone'),
    *('HuggingFaceClassifier', 'TimmClassifier', 'CLIPGenerator'),
    *('GroundingHead', 'SeqGenerationHead', 'VQAGenerationHead'),
)
# base classes of the types in some places
BASES = {
    ('model',): (BaseClassifier, LoRAModel),
    ('model', 'module'): BaseClassifier,
}
TEXTS = (
    # of models: choices, by which nothing is looked up but a number or branch
    *('arch', 'approximate', 'bias', 'communication', 'contrast'),
    *('drop_path_mode', 'ending', 'ffn_type', 'fusion', 'fusion_mode'),
    *('graph_conv_type', 'interpolate_mode', 'last_block', 'mode'),
    *('out_type', 'padding', 'pooling', 'projector', 'reduction', 'style'),
    # of transforms
    *('algorithm_keys', 'backend', 'color_format', 'color_type', 'direction'),
    *('edge', 'imdecode_backend', 'input_key', 'interpolation'),
    *('magnitude_key', 'magnitude_std', 'meta_keys', 'padding_mode'),
    *('policies', 'second_interpolation'),
)
# file clients, of which one imports from a folder that is named to it
NEVER = ('backend_args', 'file_client_args', 'trust_remote_code')
# endings of files that could run code where mmengine opens them
UNSAFE_FILES = ('pickle', 'pkl', 'yaml', 'yml')
# what a trained model that is used has no use for
OF_TRAINING = ('_scope_', 'batch_augments', 'init_cfg')


def without_training(settings):
    """Drop what initializes a model, or only training reads.

    Returns:
        dict | list | ...: A copy, at all depths without ``OF_TRAINING``.
    """
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
    """Refuse settings that could import, download or open something, and
    sizes that would take hours or all memory.

    Raises:
        ValueError: Names all types, texts and settings that are not allowed.
    """
    refused = [
        problem
        for name, value in config.items()
        for problem in _refused(value, (name,))
    ]
    if refused:
        raise ValueError(f'settings not allowed: {", ".join(refused)}')


def _refused(value, place: tuple) -> Iterator[str]:
    """Yield the settings that are not allowed, at all depths."""
    where = '.'.join(map(str, place))
    if isinstance(value, dict):
        for name, inner in value.items():
            if name != 'type':
                yield from _refused(inner, (*place, name))
            elif not _is_type(inner, place):
                yield f'{where}.type={inner!r:.80}'
    elif isinstance(value, list | tuple | set):
        if len(value) > LARGEST:
            yield f'{where} ({len(value)} values)'
        for inner in value:
            yield from _refused(inner, place)
    elif isinstance(value, int | float):
        of_image = place[0] == 'test_dataloader' and place[-1] != 'disk_mb'
        if (LARGEST if of_image else MOST) < abs(value) < inf:
            yield f'{where}={value!r:.80}'
    elif isinstance(value, str) and not _is_text(value, place[-1]):
        yield f'{where}={value!r:.80}'
    if place[-1] in NEVER and value is not None:
        yield where


def _is_type(name, place: tuple) -> bool:
    """Tell whether the setting at a place may have this type."""
    if place == ('model', 'targets'):  # of LoRA: names of layers
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
    """Tell whether a part of a model may be here: no network in a layer."""
    if place in BASES:
        return issubclass(kind, BASES[place])
    is_backbone = place[-1] == 'backbone'
    return not issubclass(kind, BaseModel) and (
        is_backbone or not issubclass(kind, BaseBackbone)
    )


def _find(registry: Registry, name: str):
    """Look a name up as mmengine does in the scope of mmpretrain.

    ``Registry.get`` is not asked: it imports what it does not find.
    """
    scope, name = Registry.split_scope_key(name)
    scopes = ('mmpretrain', 'mmengine') if scope is None else (scope,)
    while registry is not None:
        registry.import_from_location()
        if registry.scope in scopes and name in registry.module_dict:
            return registry.module_dict[name]
        registry = registry.parent
    return None


def _is_text(text: str, name: str) -> bool:
    """Tell whether a setting may have this text."""
    elsewhere = '://' in text or text.startswith(('//', '\\\\'))
    unsafe = text.lower().endswith(UNSAFE_FILES)
    return name in TEXTS and not elsewhere and not unsafe


def compare_heads(backbone, source: WeightSource) -> None:
    """Log a warning if the weights have another number of heads.

    Args:
        backbone (ForeignWeights): The backbone after loading.
        source (WeightSource): Source of the weights.
    """
    ours = vars(backbone).get('arch_settings', {}).get('num_heads')
    theirs = _stored_heads(backbone, source) or heads_of_release(
        source.keys, backbone.embed_dims, source.arch
    )
    if ours and theirs and ours != theirs:
        MMLogger.get_current_instance().warning(
            f'{source.name} was trained with {theirs} attention heads, but '
            f'this model has {ours}, so its outputs are wrong; set '
            f'arch=dict(..., num_heads={theirs})'
        )


def _stored_heads(backbone, source: WeightSource) -> int | None:
    try:
        stored = stored_backbone(dict(meta=source.meta))
    except ValueError:  # of settings that are not read
        return None
    arch = (stored or {}).get('arch')
    if isinstance(arch, str):
        arch = backbone.arch_zoo.get(arch.lower())
    return arch.get('num_heads') if isinstance(arch, dict) else None
