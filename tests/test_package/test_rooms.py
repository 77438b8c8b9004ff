# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Import direction of packages, and the tool that counts their lines."""

import ast
from pathlib import Path

from count_lines import lines_of

import mmclca

PACKAGE = Path(mmclca.__file__).parent
PACKAGES = (  # from the top
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
    'building',
    'registry',
    'model_index',
    'utils',
    'export_formats',
    'errors',
    'dependencies',
    'version',
)


def package_in(module):
    """Return the subpackage in a module name, '' for mmclca itself."""
    return (*module.split('.'), '')[1]


def imported(file):
    """Yield the names of all imported modules in a file."""
    package = ('mmclca', *file.relative_to(PACKAGE).parent.parts)
    for node in ast.walk(ast.parse(file.read_text(encoding='utf-8'))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        if isinstance(node, ast.Call) and ast.unparse(node.func) == 'lazy':
            # mmclca.cli, above all packages, computes the names
            yield from (x.value for x in node.args if hasattr(x, 'value'))
        if isinstance(node, ast.ImportFrom):
            start = package[: len(package) + 1 - node.level]
            source = '.'.join(start) if node.level else ''
            source = '.'.join(filter(None, (source, node.module)))
            yield source
            if source == 'mmclca':  # from mmclca import package
                yield from (f'mmclca.{alias.name}' for alias in node.names)


def test_every_package_has_a_level():
    found = {path.stem for path in PACKAGE.iterdir() if path.stem[0] != '_'}
    assert found - {'', '.mim'} == {*PACKAGES}


def test_imports_go_downward():
    upward = [
        f'{file.relative_to(PACKAGE)} imports {name}'
        for file in sorted(PACKAGE.glob('*/**/*.py'))
        for name in imported(file)
        if name.split('.')[0] == 'mmclca'
        and package_in(name) in PACKAGES
        and PACKAGES.index(package_in(name))
        < PACKAGES.index(file.relative_to(PACKAGE).parts[0])
    ]
    assert not upward


def test_lines_of_counts_only_code():
    text = '"""Title."""\n\n# reason\nx = [\n    1,  # first\n]\n'
    assert lines_of(text) == 3
