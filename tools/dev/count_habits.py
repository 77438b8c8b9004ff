# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Count habits of code without guidance for its readers: ``python
tools/dev/count_habits.py [FOLDER ...]``. ``--list`` prints the places.
"""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from mmclca import cli

# names without a meaning
VAGUE = {
    *('facts', 'found', 'given', 'had', 'held', 'how', 'kind', 'known'),
    *('listed', 'more', 'most', 'near', 'one', 'others', 'own', 'place'),
    *('rest', 'shown', 'some', 'text', 'whole', 'words'),
}
FUNCTIONS = ast.FunctionDef, ast.AsyncFunctionDef
FRAMES = {'_getframe', 'currentframe', 'walk_stack'}
SHORT, MANY_RESULTS = 8, 3


@dataclass(frozen=True)
class Habit:
    """A habit, and what its number refers to."""

    title: str
    base: str  # key in :class:`Counts`, '' for a plain count
    scale: int = 1


HABITS = {
    'vague': Habit('vague names per 1,000 bindings', 'bindings', 1000),
    'of': Habit('functions named ..._of, %', 'functions', 100),
    'splats': Habit('splats per 1,000 calls', 'calls', 1000),
    'starred': Habit('starred literals', ''),
    'fragments': Habit(
        'private functions under 8 lines with one use, %', 'functions', 100
    ),
    'tuples': Habit(
        'functions that return a tuple of more than three, %', 'functions', 100
    ),
    'frames': Habit('inspections of frames', ''),
}


@dataclass(frozen=True)
class Place:
    """Place of a habit, or of a node for its rate."""

    key: str
    file: Path
    line: int
    name: str


def find_places(file: Path) -> Iterator[Place]:
    """Yield the habits in a file, and all bindings, functions and calls."""
    tree = ast.parse(file.read_text(encoding='utf-8'))
    nodes = list(ast.walk(tree))
    used = [x.id for x in nodes if isinstance(x, ast.Name)]
    used += [x.attr for x in nodes if isinstance(x, ast.Attribute)]
    for node in nodes:
        for key, name in inspect_node(node, used):
            yield Place(key, file, node.lineno, name)


def inspect_node(node: ast.AST, used: list[str]) -> Iterator[tuple[str, str]]:
    """Yield the bindings, functions, calls and habits in a node."""
    for name in list_bindings(node):
        yield 'bindings', name
        if name in VAGUE:
            yield 'vague', name
    if isinstance(node, FUNCTIONS):
        yield 'functions', node.name
        for key in list_function_habits(node, used):
            yield key, node.name
    elif isinstance(node, ast.Call):
        name = ast.unparse(node.func)
        yield 'calls', name
        if any(isinstance(x, ast.Starred) for x in node.args):
            yield 'splats', name
        if name.rpartition('.')[2] in FRAMES:
            yield 'frames', name
    elif isinstance(node, (ast.List, ast.Tuple)):
        stars = [x.value for x in node.elts if isinstance(x, ast.Starred)]
        if any(isinstance(x, (ast.List, ast.Tuple)) for x in stars):
            yield 'starred', ast.unparse(node)[:60]


def list_bindings(node: ast.AST) -> list[str]:
    """List the names that a node binds: a variable, or parameters."""
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        return [node.id]
    if not isinstance(node, (*FUNCTIONS, ast.Lambda)):
        return []
    arguments = node.args
    parameters = [
        *arguments.posonlyargs,
        *arguments.args,
        *arguments.kwonlyargs,
    ]
    parameters += [x for x in (arguments.vararg, arguments.kwarg) if x]
    return [x.arg for x in parameters if x.arg not in ('self', 'cls')]


def list_function_habits(
    function: ast.FunctionDef | ast.AsyncFunctionDef, used: list[str]
) -> Iterator[str]:
    """Yield the keys of the habits of a function."""
    name = function.name.strip('_')
    if name == 'of' or name.startswith('of_') or name.endswith('_of'):
        yield 'of'
    is_private = function.name.startswith('_') and name[-1:] != '_'
    is_private = is_private and not function.name.startswith('__')
    is_short = function.end_lineno - function.lineno < SHORT
    if is_private and is_short and used.count(function.name) == 1:
        yield 'fragments'
    returned = [x.value for x in ast.walk(function) if type(x) is ast.Return]
    tuples = [x for x in returned if isinstance(x, ast.Tuple)]
    if any(len(x.elts) > MANY_RESULTS for x in tuples):
        yield 'tuples'


def measure(folder: Path) -> tuple[dict[str, float], list[Place]]:
    """Return the number per habit in a folder, and all places."""
    places = [x for f in sorted(folder.rglob('*.py')) for x in find_places(f)]
    keys = [x.key for x in places]
    numbers = {}
    for key, habit in HABITS.items():
        base = keys.count(habit.base) if habit.base else 1
        numbers[key] = habit.scale * keys.count(key) / max(base, 1)
    return numbers, [x for x in places if x.key in HABITS]


def main():
    parser = cli.Parser(__doc__)
    folders = [Path('mmclca'), Path('tools')]
    what = 'folders (default: mmclca and tools)'
    parser.add('folders', what, folders, nargs='*', type=Path)
    parser.flag('--list', 'file, line and name of every place')
    args = parser.parse_args()
    for folder in args.folders:
        numbers, places = measure(folder)
        print(folder)
        for key, habit in HABITS.items():
            print(f'{numbers[key]:8.1f}  {habit.title}')
        for x in places if args.list else ():
            print(f'{x.file}:{x.line}: {x.key} {x.name}')


if __name__ == '__main__':
    cli.run(main)
