# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Config texts that come with weights, read without running them.

mmengine runs a config file as Python. A text inside a checkpoint is of
whoever made the file, as its tensors are, and is only read.
"""

import ast
from math import inf, nan

from mmengine.config import Config

NUMBERS = dict(inf=inf, nan=nan)


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
