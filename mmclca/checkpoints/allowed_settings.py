# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""What a config that comes with weights may say, in a few lists.

mmengine imports what it does not know: ``type='helper'`` runs helper.py, and
so do ``conv_type``, ``norm_layer``, ``_scope_`` and others that types look
up. Models fetch weights that a setting names, data sets open pickles. What
came with a download must do none of this, so whatever is not listed here is
refused: types by the setting that holds them, and texts by their name.
"""

from collections.abc import Iterator

from mmengine.registry import Registry

from mmclca.registry import DATASETS, MODELS, TRANSFORMS


def _below(package: str, modules: str) -> list[str]:
    return [f'{package}.{module}' for module in modules.split()]


# of which modules the type of a model may be
CLASSIFIERS = (
    'mmclca.models.classifiers',
    'mmpretrain.models.classifiers.image',
)
# and a type in a model, by the setting that holds it
PARTS = dict(
    backbone=(
        'mmclca.models.backbones',
        'mmpretrain.models.backbones',
        'mmpretrain.models.selfsup.mocov3',
    ),
    stem=('mmclca.models.stems',),
    neck=('mmclca.models.layers.attention_pool', 'mmpretrain.models.necks'),
    # without those that look up tokenizers, or read lists of answers
    head=(
        'mmclca.models.heads',
        *_below(
            'mmpretrain.models.heads',
            'cls_head conformer_head deit_head efficientformer_head '
            'levit_head linear_head margin_head multi_label stacked_head '
            'vig_head vision_transformer_head',
        ),
    ),
    reducer=('mmclca.models.reduction.reducers',),
    cache=('mmclca.models.reduction.cross_layer_cache',),
    data_preprocessor=(
        'mmengine.model.base_model.data_preprocessor',
        'mmpretrain.models.utils.data_preprocessor',
    ),
)
# under any other name, such as norm_cfg and loss
LAYERS = (
    'mmclca.models.layers.resmlp_layer',
    'torch.nn',
    *_below(
        'mmcv.cnn.bricks',
        'activation conv2d_adaptive_padding conv_ws drop hsigmoid swish '
        'wrappers',
    ),
    'mmengine.utils.dl_utils.parrots_wrapper',
    'mmpretrain.models.losses',
    'mmpretrain.models.utils.norm',
)
# data sets that are folders or lists; others open pickles, or fetch theirs
DATA_SETS = (
    'mmclca.datasets.ultra_fgvc',
    'mmengine.dataset.dataset_wrapper',
    *_below(
        'mmpretrain.datasets',
        'caltech101 cub custom dataset_wrappers dtd fgvcaircraft flowers102 '
        'food101 imagenet oxfordiiitpet places205 stanfordcars sun397',
    ),
)
STEPS = (
    'mmclca.datasets.decoding',
    'mmclca.datasets.image_cache',
    'mmcv.transforms',
    'mmpretrain.datasets.transforms',
)
# they look up what others name, or build what has a name of any kind
NO_TYPES = ('Albu', 'Albumentations', 'PackMultiTaskInputs', 'TIMMBackbone')
TEXTS = (
    # of models: choices, by which nothing is looked up but a number or branch
    *('arch', 'approximate', 'bias', 'communication', 'drop_path_mode'),
    *('ending', 'ffn_type', 'fusion', 'fusion_mode', 'graph_conv_type'),
    *('interpolate_mode', 'mode', 'out_type', 'padding', 'pooling'),
    *('reduction', 'style'),
    # of transforms
    *('algorithm_keys', 'backend', 'color_format', 'color_type', 'direction'),
    *('edge', 'imdecode_backend', 'input_key', 'interpolation'),
    *('magnitude_key', 'meta_keys', 'padding_mode', 'policies'),
    'second_interpolation',
    # of data sets: names, and folders and lists of this machine, which are
    # read as text where a split of the data is asked for
    *('ann_file', 'classes', 'data_prefix', 'data_root', 'dataset'),
    *('extensions', 'img_path', 'layout', 'split'),
)
# file clients, of which one imports from a folder that it is told
NEVER = ('backend_args', 'file_client_args', 'trust_remote_code')
# endings of files that could run code where mmengine opens them
UNSAFE_FILES = ('pickle', 'pkl', 'yaml', 'yml')
# what a trained model that is used has no use for
OF_TRAINING = ('_scope_', 'batch_augments', 'init_cfg')


def without_training(settings):
    """Settings without what initializes a model, or only training reads.

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
    """Refuse settings that could import, fetch or open something.

    Raises:
        ValueError: If there is a type that is not allowed where it is, or a
            text or setting that is not allowed anywhere; names all of them.
    """
    refused = [
        problem
        for name, value in config.items()
        for problem in _refused(value, (name,))
    ]
    if refused:
        raise ValueError(f'not allowed are {", ".join(refused)}')


def _refused(value, place: tuple) -> Iterator[str]:
    """Settings that are not allowed, at all depths of a value."""
    where = '.'.join(map(str, place))
    if isinstance(value, dict):
        for name, inner in value.items():
            if name != 'type':
                yield from _refused(inner, (*place, name))
            elif not _is_type(inner, place):
                yield f'{where}.type={inner!r:.80}'
    elif isinstance(value, list | tuple | set):
        for inner in value:
            yield from _refused(inner, place)
    elif isinstance(value, str) and not _is_text(value, place[-1]):
        yield f'{where}={value!r:.80}'
    if place[-1] in NEVER and value is not None:
        yield where


def _is_type(name, place: tuple) -> bool:
    """Whether the setting at a place may have this type."""
    if place == ('model',):
        registry, modules = MODELS, CLASSIFIERS
    elif place[0] in ('model', 'data_preprocessor'):
        registry, modules = MODELS, PARTS.get(place[-1], LAYERS)
    elif place[-1] in ('dataset', 'datasets'):
        registry, modules = DATASETS, DATA_SETS
    else:
        registry, modules = TRANSFORMS, STEPS
    kind = _find(registry, name) if isinstance(name, str) else None
    return (
        kind is not None
        and kind.__module__.startswith(modules)
        and kind.__name__ not in NO_TYPES
    )


def _find(registry: Registry, name: str):
    """What mmengine finds under a name in the scope of mmpretrain.

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
    """Whether a setting may have this text."""
    elsewhere = '://' in text or text.startswith(('//', '\\\\'))
    unsafe = text.lower().endswith(UNSAFE_FILES)
    return name in TEXTS and not elsewhere and not unsafe
