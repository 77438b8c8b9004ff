# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Fit an image classifier to photos, as ``python -m mmclca fit`` does."""

from importlib import import_module

from mmclca.utils.extras import require

__all__ = ['FittedModel', 'fit']

NEEDED = ('jinja2', 'matplotlib', 'sklearn')


def __getattr__(name: str):
    # lazy, because the command line needs only the options
    if name in __all__:
        require(*NEEDED, extra='fit')
        return getattr(import_module('mmclca.fitting.pipeline'), name)
    raise AttributeError(f'module {__name__!r} has no attribute {name!r}')


def __dir__() -> list[str]:
    return [*globals(), *__all__]  # for completion and Sphinx
