# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Import direction of packages, and limits on habits of their code."""

import ast

import pytest
from count_habits import HABITS, find_places, measure
from count_lines import count_code_lines
from tiny_run import ROOT

PACKAGE = ROOT / 'mmclca'
PACKAGES = (  # from the top
    'cli',
    'page',
    'survey',
    'fitting',
    'sweep',
    'benchmark',
    'engine',
    'apis',
    'visualization',
    'deployment',
    'export_formats',
    'evaluation',
    'datasets',
    'models',
    'checkpoints',
    'configs',
    'building',
    'registry',
    'model_index',
    'utils',
    'languages',
    'errors',
    'dependencies',
    'version',
)
# most per habit, see the titles in count_habits.py
LIMITS = {
    'mmclca': dict(
        vague=5, of=0.5, splats=8, starred=0, fragments=3, tuples=0.1,
        frames=0,
    ),
    'tools': dict(
        vague=5, of=0.5, splats=8, starred=0, fragments=3, tuples=0.1,
        frames=0,
    ),
}  # fmt: skip


def list_imports(file):
    """Yield the modules that a file imports, also within functions."""
    package = ('mmclca', *file.relative_to(PACKAGE).parent.parts)
    for node in ast.walk(ast.parse(file.read_text(encoding='utf-8'))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        if isinstance(node, ast.ImportFrom):
            start = package[: len(package) + 1 - node.level]
            source = '.'.join(start) if node.level else ''
            source = '.'.join(filter(None, (source, node.module)))
            yield source
            if source == 'mmclca':  # from mmclca import package
                yield from (f'mmclca.{alias.name}' for alias in node.names)


def get_level(module):
    """Return the level of a module's package, None if it has none."""
    top, _, inner = module.partition('.')
    package = inner.partition('.')[0]
    is_ours = top == 'mmclca' and package in PACKAGES
    return PACKAGES.index(package) if is_ours else None


def test_every_package_has_a_level():
    names = {path.stem for path in PACKAGE.iterdir() if path.stem[0] != '_'}
    assert names - {'', '.mim'} == {*PACKAGES}


def test_imports_go_downward():
    upward = [
        f'{file.relative_to(PACKAGE)} imports {name}'
        for file in sorted(PACKAGE.glob('*/**/*.py'))
        for name in list_imports(file)
        if get_level(name) is not None
        and get_level(name)
        < PACKAGES.index(file.relative_to(PACKAGE).parts[0])
    ]
    assert not upward


@pytest.mark.parametrize('folder', LIMITS)
def test_habits_stay_within_their_limits(folder):
    numbers, _ = measure(ROOT / folder)
    assert {*numbers} == {*HABITS}
    above = {
        key: round(number, 2)
        for key, number in numbers.items()
        if number > LIMITS[folder][key]
    }
    assert not above


CODE = """
def weights_of(found, *rest):
    return 1, 2, 3, found


def _short(x):
    return x


def use(x):
    names = (*('a', 'b'), x)
    sys._getframe()
    return _short(*names)
"""


def test_each_habit_is_counted(tmp_path):
    (tmp_path / 'code.py').write_text(CODE)
    places = [*find_places(tmp_path / 'code.py')]
    pairs = {(place.key, place.name) for place in places}
    assert pairs >= {
        ('vague', 'found'),
        ('vague', 'rest'),
        ('of', 'weights_of'),
        ('tuples', 'weights_of'),
        ('fragments', '_short'),
        ('splats', '_short'),
        ('starred', "(*('a', 'b'), x)"),
        ('frames', 'sys._getframe'),
    }
    numbers, _ = measure(tmp_path)
    assert numbers['vague'] == pytest.approx(1000 * 2 / 5)
    assert numbers['splats'] == 500 and numbers['starred'] == 1


def test_count_code_lines_counts_only_code():
    code = '"""Title."""\n\n# reason\nx = [\n    1,  # first\n]\n'
    assert count_code_lines(code) == 3
