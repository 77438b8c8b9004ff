# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Parse the text of untrusted configs without executing it.

mmengine executes config files as Python. Here, a config is assignments of
literals and of ``dict(...)``.
"""

import ast
from math import inf, nan

from mmengine.config import Config

from mmclca.errors import Error

# maximum characters in a config (20,000 are usual) and nesting depth
LONGEST, DEEPEST = 2**17, 100
NUMBERS = dict(inf=inf, nan=nan)


def parse_plain_config(text: str) -> Config:
    """Parse the output from ``Config.pretty_text``.

    Raises:
        Error: If the text contains anything but plain settings.
    """
    if len(text) > LONGEST:
        raise Error(f'{len(text)} characters exceed the limit {LONGEST}')
    try:
        tree = ast.parse(text)
        _check_depth(tree)
        return Config(dict(map(_assignment, tree.body)))
    except SyntaxError as error:
        raise Error(f'line {error.lineno} is not a setting') from error
    except KeyError as error:  # names reserved by mmengine
        raise Error(error.args[0]) from error
    # unhashable keys; too many brackets or signs for Python
    except (MemoryError, RecursionError, TypeError) as error:
        problem = f'{type(error).__name__}: {error}'
        raise Error(f'not plain settings ({problem})') from error


def _check_depth(tree: ast.AST) -> None:
    """Raise if settings are nested too deeply for recursive code."""
    nodes = [tree]
    for _ in range(DEEPEST):
        nodes = [one for node in nodes for one in ast.iter_child_nodes(node)]
    if nodes:
        raise Error('the settings are nested too deeply')


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


def _refusal(node: ast.AST) -> Error:
    code = ' '.join(ast.unparse(node).split())
    return Error(f'line {node.lineno} is not a setting: {code[:60]}')
