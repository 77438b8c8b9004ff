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
MAX_LENGTH, MAX_DEPTH = 2**17, 100
NUMBERS = dict(inf=inf, nan=nan)


def parse_plain_config(source: str) -> Config:
    """Parse the output from ``Config.pretty_text``.

    Raises:
        Error: If the text contains anything but plain settings.
    """
    if len(source) > MAX_LENGTH:
        raise Error(f'{len(source)} characters exceed the limit {MAX_LENGTH}')
    try:
        tree = ast.parse(source)
    except SyntaxError as error:
        raise Error(f'line {error.lineno} is not a setting') from error
    # null bytes; too many brackets or signs for Python
    except (MemoryError, RecursionError, ValueError) as error:
        raise _not_plain(error) from error
    _check_depth(tree)
    settings = {}
    for node in tree.body:
        match node:
            case ast.Assign(targets=[ast.Name(id=name), *_]):
                settings[name] = _evaluate(node.value)
            case _:
                raise _refuse(node)
    try:
        return Config(settings)
    except KeyError as error:  # names reserved by mmengine
        raise Error(error.args[0]) from error


def _not_plain(error: Exception) -> Error:
    return Error(f'not plain settings ({type(error).__name__}: {error})')


def _check_depth(tree: ast.AST) -> None:
    """Raise if settings are nested too deeply for recursive code."""
    nodes = [tree]
    for _ in range(MAX_DEPTH):
        nodes = [
            child for node in nodes for child in ast.iter_child_nodes(node)
        ]
    if nodes:
        raise Error('the settings are nested too deeply')


def _evaluate(node: ast.expr):
    """Return the value of a literal or of ``dict(...)``."""
    match node:
        case ast.Constant(value=str() | int() | float() | None):
            return node.value
        case ast.Name() if node.id in NUMBERS:
            return NUMBERS[node.id]
        case ast.UnaryOp(op=ast.USub()):
            number = _evaluate(node.operand)
            if not isinstance(number, int | float):
                raise Error(f'not plain settings ({ast.unparse(node):.60})')
            return -number
        case ast.List():
            return [_evaluate(item) for item in node.elts]
        case ast.Tuple():
            return tuple(_evaluate(item) for item in node.elts)
        case ast.Set():
            return {_evaluate_key(item) for item in node.elts}
        case ast.Dict() if None not in node.keys:  # no ** before a dict
            return {
                _evaluate_key(key): _evaluate(value)
                for key, value in zip(node.keys, node.values, strict=True)
                if key is not None
            }
        case ast.Call(func=ast.Name(id='dict'), args=[] | [_]):
            named = {word.arg: _evaluate(word.value) for word in node.keywords}
            start = _evaluate(node.args[0]) if node.args else {}
            if isinstance(start, dict) and None not in named:
                return {**start, **named}
    raise _refuse(node)


def _evaluate_key(node: ast.expr):
    """Return the value of a key or of an item of a set."""
    key = _evaluate(node)
    try:
        hash(key)
    except TypeError as error:
        raise _not_plain(error) from error
    return key


def _refuse(node: ast.expr | ast.stmt) -> Error:
    code = ' '.join(ast.unparse(node).split())
    return Error(f'line {node.lineno} is not a setting: {code[:60]}')
