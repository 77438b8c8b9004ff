# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Errors of objects in a config."""

import pytest

from mmclca import Error
from mmclca.building import config_errors
from mmclca.models.pretrained import Pretrained


def check_rate(rate):
    if not isinstance(rate, float):
        raise AssertionError  # as mmpretrain, whose asserts have no text


def compare_rate(rate):
    return rate <= 0


@pytest.mark.parametrize(
    'check, message',
    [
        (check_rate, r'AssertionError at `.*` \(check_rate\)'),
        (compare_rate, r"'str' and 'int' at `return rate <= 0`"),
    ],
)
def test_error_names_the_statement_if_its_message_has_no_setting(
    check, message
):
    with pytest.raises(Error, match=message), config_errors('a.py'):
        check('a')


@pytest.mark.parametrize('checkpoint', [5, None, ['a.pth']])
def test_pretrained_refuses_checkpoint_if_it_is_no_path(checkpoint):
    with pytest.raises(Error, match='must be a path or URL'):
        Pretrained(checkpoint)
