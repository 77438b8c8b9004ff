# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Licenses of the packages that mmclca needs at run time."""

import re

import pytest
from tiny_run import ROOT
from write_licenses import get_license, rows, runtime, written

PACKAGES = runtime()
GPL = r'\bA?GPL|General Public License \(GPL|Affero'
# encoders and a line editor under the GPL, which wheels of others bundle
GPL_LIBRARIES = r'x26[45]|xvid|libreadline'


def has_gpl(text):
    """Whether each alternative of a license has the GPL."""
    return all(re.search(GPL, one) for one in text.split(' OR '))


@pytest.mark.parametrize('text', ['GPL-3.0-only', 'MIT AND AGPL-3.0'])
def test_gpl_is_found(text):
    assert has_gpl(text)
    assert not has_gpl(f'LGPL-2.1 OR {text}')


@pytest.mark.parametrize('name', PACKAGES)
def test_package_is_free_of_the_gpl(name):
    package = PACKAGES[name]
    found = get_license(name, package)
    assert found != 'unknown' and not has_gpl(found)
    files = '\n'.join(map(str, package.files or ()))
    assert not re.findall(GPL_LIBRARIES, files)


def test_table_has_the_locked_packages():
    """Other versions and builds are left to the tests above."""
    locked = (ROOT / 'requirements/locked.txt').read_text()
    table = written()
    for name, row in rows().items():
        if re.search(rf'(?m)^{re.escape(name)}==\S+ \\$', locked):
            assert table[name] == row or table[name][1] != row[1]
