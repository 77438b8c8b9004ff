# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""The config and the class names that a checkpoint file holds.

mmengine runs a config file as Python. A text inside a checkpoint is of
whoever made the file, as its tensors are, and is only read.
"""

import ast
from collections.abc import Callable
from math import inf, nan

from mmengine.config import Config

from .allowed_settings import check_settings, without_training
from .releases import source_of, weights_of

# what a trained model does without; its teacher is in other files
UNUSED = ('pretrained', 'teacher', 'train_cfg')
LOADERS = ('train_dataloader', 'val_dataloader', 'test_dataloader')


def stored_config(checkpoint: dict) -> Config:
    """The config that a model was trained with, out of its checkpoint.

    It is read as plain settings and not run. Only the model, its data
    preprocessor and the data sets are taken from it.

    Raises:
        ValueError: If there is none, or it is more than plain settings; see
            :func:`mmclca.checkpoints.allowed_settings.check_settings`.
    """
    remedy = 'give the config beside it (predict.py: --config CONFIG)'
    if stored_text(checkpoint) is None:
        raise ValueError(f'{_name(checkpoint)} holds no config: {remedy}')
    parts = _read(checkpoint, _used, f'If you trust it, {remedy}')
    return Config(dict(parts, default_scope='mmpretrain'))


def stored_backbone(checkpoint: dict) -> dict | None:
    """Settings of the backbone in the config of a checkpoint.

    They are read as :func:`stored_config` reads; what else is in the config
    is not looked at.

    Returns:
        dict | None: None where there is no config.

    Raises:
        ValueError: If there is no backbone in it, or it is more than plain
            settings.
    """
    if stored_text(checkpoint) is None:
        return None
    remedy = (
        'Write plain settings into it (publish_model.py --config CONFIG), or '
        'give the weights alone'
    )
    return _read(checkpoint, _backbone, remedy)['model']['backbone']


def stored_text(checkpoint: dict) -> str | None:
    """The text of the config in a checkpoint, None where there is none.

    It is whatever who made the file wrote.
    """
    text = _dict_in(checkpoint, 'meta').get('cfg')
    return text if isinstance(text, str) else None


def stored_classes(checkpoint: dict) -> list[str] | None:
    """Class names that a checkpoint holds, None where there are none.

    Raises:
        ValueError: If they are no list of texts.
    """
    classes = _dict_in(_dict_in(checkpoint, 'meta'), 'dataset_meta')
    classes = classes.get('classes')
    if classes is not None:
        check_names(classes, _name(checkpoint))
    return classes


def check_names(classes, source: str) -> None:
    """ValueError if class names are no list or tuple of texts."""
    if not isinstance(classes, list | tuple) or not all(
        isinstance(name, str) for name in classes
    ):
        raise ValueError(
            f'{source}: its class names are no list of texts, as '
            "['ash', 'elm'] is: write them so, or give its weights alone"
        )


def _dict_in(found: dict, name: str) -> dict:
    """A part of what a file holds; empty where that is no dict."""
    part = found.get(name)
    return part if isinstance(part, dict) else {}


def _name(checkpoint: dict) -> str:
    return source_of(weights_of(checkpoint)).name


def _read(
    checkpoint: dict, choose: Callable[[dict], dict], remedy: str
) -> dict:
    """Parts of a stored config, which are checked."""
    try:
        parts = choose(parse_plain_config(stored_text(checkpoint)).to_dict())
        check_settings(parts)
    except ValueError as error:
        raise ValueError(
            f'the config in {_name(checkpoint)} is not used, for it is not '
            f'run as Python is: {error}. {remedy}'
        ) from error
    return parts


def _backbone(config: dict) -> dict:
    """The one part of a config of which a backbone is built."""
    backbone = _settings(_settings(config, 'model'), 'backbone')
    return without_training(dict(model=dict(backbone=backbone)))


def _used(config: dict) -> dict:
    """The parts of a config of which models and data sets are built."""
    parts = {
        name: dict(_settings(config, name))
        for name in ('model', 'data_preprocessor', *LOADERS)
        if config.get(name) is not None
    }
    for name in UNUSED:
        parts.get('model', {}).pop(name, None)
    for name in parts.keys() & {*LOADERS}:
        parts[name] = dict(dataset=_settings(parts[name], 'dataset'))
    return without_training(parts)


def _settings(config: dict, name: str) -> dict:
    if not isinstance(config.get(name), dict):
        raise ValueError(f'{name} is no dict')
    return config[name]


NUMBERS = dict(inf=inf, nan=nan)


def parse_plain_config(text: str) -> Config:
    """Read what ``Config.pretty_text`` has written.

    Returns:
        Config: The settings.

    Raises:
        ValueError: If there is anything else in it.
    """
    try:
        return Config(dict(map(_assignment, ast.parse(text).body)))
    except SyntaxError as error:
        raise ValueError(f'line {error.lineno} is no setting') from error
    except KeyError as error:  # a name that mmengine keeps for itself
        raise ValueError(error.args[0]) from error
    except (RecursionError, TypeError) as error:  # a key that is a list
        raise ValueError(f'it is no plain settings ({error})') from error


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
    return ValueError(f'line {node.lineno}, {code[:60]}, is no plain setting')
