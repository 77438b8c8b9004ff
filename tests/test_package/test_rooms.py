# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""A room imports the rooms below it, so that none needs itself."""

import ast
from pathlib import Path

import mmclca

PACKAGE = Path(mmclca.__file__).parent
ROOMS = (  # from the top
    'cli',
    'page',
    'fitting',
    'sweep',
    'benchmark',
    'engine',
    'apis',
    'visualization',
    'deployment',
    'evaluation',
    'datasets',
    'models',
    'checkpoints',
    'configs',
    'registry',
    'model_index',
    'utils',
    'dependencies',
    'version',
)


def room(module):
    """The part of a name that says where it is, '' for the package."""
    return (*module.split('.'), '')[1]


def imported(file):
    """Names of all modules here that a file imports, anywhere in it."""
    package = ('mmclca', *file.relative_to(PACKAGE).parent.parts)
    for node in ast.walk(ast.parse(file.read_text(encoding='utf-8'))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        if isinstance(node, ast.ImportFrom):
            start = package[: len(package) + 1 - node.level]
            source = '.'.join(start) if node.level else ''
            source = '.'.join(filter(None, (source, node.module)))
            yield source
            if source == 'mmclca':  # from mmclca import room
                yield from (f'mmclca.{alias.name}' for alias in node.names)


def test_every_room_has_its_level():
    found = {path.stem for path in PACKAGE.iterdir() if path.stem[0] != '_'}
    assert found - {'', '.mim'} == {*ROOMS}


def test_imports_go_downward():
    upward = [
        f'{file.relative_to(PACKAGE)} imports {name}'
        for file in sorted(PACKAGE.glob('*/**/*.py'))
        for name in imported(file)
        if name.split('.')[0] == 'mmclca'
        and room(name) in ROOMS
        and ROOMS.index(room(name))
        < ROOMS.index(file.relative_to(PACKAGE).parts[0])
    ]
    assert not upward
