# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Errors of shapes in the first iteration, and only there."""

import pytest
import torch

from mmclca.engine.first_iteration import convert_shape_errors
from mmclca.errors import Error


class Loop:
    """Loop whose iterations call a function of torch."""

    def __init__(self, step):
        self.step = step

    def run_iter(self, index):
        return self.step(index)


def multiply_wrong(index):
    return torch.nn.Linear(3, 2)(torch.ones(1, 4))


@pytest.fixture
def as_library(monkeypatch):
    """Count this file as a module of the package."""
    monkeypatch.setattr(
        'mmclca.engine.first_iteration._has_user_code', lambda error: False
    )


def test_wrong_shape_names_config_in_first_iteration(as_library):
    loop = Loop(multiply_wrong)
    convert_shape_errors(loop, 'a.py')
    with pytest.raises(Error, match=r'a\.py: the first batch .*in_channels'):
        loop.run_iter(0)
    with pytest.raises(RuntimeError, match='cannot be multiplied'):
        loop.run_iter(1)


def test_traceback_is_kept_if_module_is_of_the_user():
    loop = Loop(multiply_wrong)
    convert_shape_errors(loop, None)
    with pytest.raises(RuntimeError, match='cannot be multiplied'):
        loop.run_iter(0)


def test_other_error_is_not_converted(as_library):
    def fail(index):
        raise RuntimeError('out of memory')

    loop = Loop(fail)
    convert_shape_errors(loop, None)
    with pytest.raises(RuntimeError, match='out of memory'):
        loop.run_iter(0)
