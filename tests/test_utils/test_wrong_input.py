# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""What is wrong input, and what a bug."""

from importlib import import_module
from pathlib import Path

import pytest

from mmclca.errors import Error, is_wrong_input
from mmclca.utils.extras import require


def refuse_setting():
    raise Error('`out` is a file')


def import_missing_name():
    from mmclca.errors import NoSuchError  # noqa: F401


WRONG_INPUT = dict(
    setting=refuse_setting,
    file=Path('/no/such/file').read_bytes,
    package=lambda: import_module('no_such_package.module'),
    extra=lambda: require('no_such_package', extra='page'),
)
BUGS = dict(
    module=lambda: import_module('mmclca.no_such_module'),
    name=import_missing_name,
    value=lambda: int('a'),
    key=lambda: {}['key'],
)


@pytest.mark.parametrize('cause', WRONG_INPUT)
def test_wrong_input_is_no_bug(cause):
    with pytest.raises(Exception) as caught:
        WRONG_INPUT[cause]()
    assert is_wrong_input(caught.value)


@pytest.mark.parametrize('cause', BUGS)
def test_other_errors_and_imports_inside_the_package_are_bugs(cause):
    with pytest.raises(Exception) as caught:
        BUGS[cause]()
    assert not is_wrong_input(caught.value)
