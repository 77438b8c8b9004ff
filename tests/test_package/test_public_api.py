# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Public names, their signatures and annotations."""

import inspect
import pkgutil
from importlib import import_module

import pytest
from golden import golden

import mmclca

MODULES = sorted(
    name
    for _, name, is_package in pkgutil.walk_packages(
        mmclca.__path__, 'mmclca.'
    )
    if is_package
)


def public_names(module):
    """Yield the name and object of each entry of ``__all__``."""
    found = import_module(module)
    for name in vars(found).get('__all__', ()):
        yield f'{module}.{name}', getattr(found, name)


def signature_of(thing):
    """Return parameter names and defaults; '' for data and exceptions."""
    is_error = isinstance(thing, type) and issubclass(thing, BaseException)
    if is_error or not callable(thing):
        return ''
    parameters = inspect.signature(thing).parameters.values()
    bare = [x.replace(annotation=x.empty) for x in parameters]
    return f'({", ".join(map(str, bare))})'


def test_public_api_equals_snapshot():
    lines = [
        f'{name}{signature_of(thing)}'
        for module in ('mmclca', *MODULES)
        for name, thing in public_names(module)
    ]
    text = '\n'.join(lines) + '\n'
    assert text == golden('api.txt', text)


@pytest.fixture(scope='module')
def public():
    """Public objects of all packages by name."""
    return dict(pair for module in MODULES for pair in public_names(module))


def test_public_functions_are_annotated(public):
    bare = [
        f'{name}: {parameter.name}'
        for name, thing in public.items()
        if inspect.isfunction(thing) and thing.__module__.startswith('mmclca')
        for parameter in inspect.signature(thing).parameters.values()
        if parameter.annotation is parameter.empty
    ]
    assert not bare


def test_public_names_have_docstrings(public):
    callables = {k: thing for k, thing in public.items() if callable(thing)}
    assert not [
        k for k, thing in callables.items() if not inspect.getdoc(thing)
    ]
