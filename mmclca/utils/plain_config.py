# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Config texts that come with weights, read without running them.

mmengine runs a config file as Python. A text inside a checkpoint is of
whoever made the file, as its tensors are, and is only read.
"""

import ast
from collections.abc import Iterator
from math import inf, nan

from mmengine import registry as mmengine_registry
from mmengine.config import Config
from mmengine.registry import Registry
from mmpretrain import datasets, models  # noqa: F401, register their types
from mmpretrain import registry as mmpretrain_registry

NUMBERS = dict(inf=inf, nan=nan)
TRUSTED = ('mmclca', 'mmcv', 'mmengine', 'mmpretrain', 'torch')
# endings by which mmengine.load opens what could run code
UNSAFE_FILES = ('pickle', 'pkl', 'yaml', 'yml')


def parse_plain_config(text: str) -> Config:
    """Read what ``Config.pretty_text`` has written.

    Args:
        text (str): Assignments of numbers, strings, lists, tuples, sets and
            dicts to names.

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


def _assignment(node: ast.stmt) -> tuple:
    if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
        return node.targets[0].id, _value(node.value)
    raise _refusal(node)


def _value(node: ast.expr):
    match node:
        case ast.Constant():
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


def check_settings(config: dict) -> None:
    """Refuse settings that could make code of someone else's run.

    mmengine imports what an unknown ``type`` names, and calls it; it opens
    pickles and YAML files without care; transformers runs what comes with a
    model where it is told to trust it.

    Args:
        config (dict): All of a config that is used.

    Raises:
        ValueError: If there are types that are not of ``TRUSTED`` packages,
            files that mmengine must not open, or ``trust_remote_code``; names
            all of them.
    """
    known = [*_registries()]
    scopes = {registry.scope for registry in known} | {None}
    names = {
        name
        for registry in known
        for name, kind in registry.module_dict.items()
        if kind.__module__.partition('.')[0] in TRUSTED
    }
    refused = []
    for key, value in _settings(config):
        scope, name = Registry.split_scope_key(str(value))
        if key == 'type' and not (scope in scopes and name in names):
            refused.append(f'the unknown type {value}')
        elif key == 'trust_remote_code':
            refused.append(key)
        elif isinstance(value, str) and value.lower().endswith(UNSAFE_FILES):
            refused.append(f'the file {value}')
    if refused:
        raise ValueError(f'it names {", ".join(refused)}')


def _registries() -> Iterator[Registry]:
    for package in (mmengine_registry, mmpretrain_registry):
        for registry in vars(package).values():
            if isinstance(registry, Registry):
                yield from _family(registry)


def _family(registry: Registry) -> Iterator[Registry]:
    yield registry
    for child in registry.children.values():
        yield from _family(child)


def _settings(value, key=None) -> Iterator[tuple]:
    """All values within settings that hold no others, and their keys."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _settings(inner, name)
    elif isinstance(value, list | tuple | set):
        for inner in value:
            yield from _settings(inner, key)
    else:
        yield key, value
