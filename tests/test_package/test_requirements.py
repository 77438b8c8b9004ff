# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Version bounds in pyproject.toml equal the tested versions."""

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version
from tiny_run import ROOT

tomllib = pytest.importorskip('tomllib')  # since Python 3.11
# extras in each environment
EXTRAS = {
    'oldest.txt': ('openmmlab', 'test'),
    'tested.txt': ('onedl', 'dev'),
    'locked.txt': ('onedl', 'dev'),
}


def bounds(name):
    """Return requirements by canonical name."""
    project = tomllib.loads((ROOT / 'pyproject.toml').read_text())['project']
    extras = project['optional-dependencies']
    texts = [*project['dependencies']]
    todo = {*EXTRAS[name]}
    done = set()
    while todo:
        extra = todo.pop()
        done.add(extra)
        for text in extras[extra]:
            requirement = Requirement(text)
            if requirement.name == 'mmclca':  # combines other extras
                todo |= requirement.extras - done
            else:
                texts.append(text)
    requirements = map(Requirement, texts)
    return {canonicalize_name(x.name): x for x in requirements}


def lines(name):
    """Return the lines of a file, with continuations."""
    text = (ROOT / 'requirements' / name).read_text()
    return text.replace('\\\n', '').splitlines()


def pins(name):
    """Return versions by canonical name, several if platforms differ."""
    versions = {}
    for line in lines(name):
        if not line.startswith('#'):
            pin = Requirement(line.partition('--hash')[0])
            (version,) = pin.specifier
            package = versions.setdefault(canonicalize_name(pin.name), [])
            package.append(Version(version.version))
    return versions


@pytest.mark.parametrize('name', EXTRAS)
def test_pins_are_allowed(name):
    pinned = pins(name)
    for package, requirement in bounds(name).items():
        for version in pinned[package]:
            assert version in requirement.specifier, requirement


def test_lower_bounds_equal_the_oldest_pins():
    pinned = pins('oldest.txt')
    for package, requirement in bounds('oldest.txt').items():
        lower = [
            Version(one.version)
            for one in requirement.specifier
            if one.operator == '>='
        ]
        assert lower == pinned[package], requirement


def test_lock_has_hashes_of_the_tested_versions():
    _, *locked = lines('locked.txt')
    assert all('--hash=sha256:' in line for line in locked)
    assert not [line for line in locked if '://' in line or ' @ ' in line]
    tested, found = pins('tested.txt'), pins('locked.txt')
    of_cuda = {x for x in found if x.startswith(('nvidia', 'cuda', 'triton'))}
    assert {k: v for k, v in found.items() if k not in of_cuda} == tested
