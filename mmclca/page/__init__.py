# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Web page that identifies photos and shows the remaining patches."""

from importlib import import_module

_MODULES = dict(
    Variants='variants', open_model='loaded_model', read_photo='photos'
)
__all__ = [*_MODULES]


def __getattr__(name: str):
    # lazy, so that a child process can end with its parent at once
    if name in _MODULES:
        module = import_module(f'mmclca.page.{_MODULES[name]}')
        return getattr(module, name)
    raise AttributeError(f'module {__name__!r} has no attribute {name!r}')


def __dir__() -> list[str]:
    return [*globals(), *__all__]  # for completion and Sphinx
