# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Public names, their signatures and annotations.

A golden file stores names and signatures. New names and optional parameters
need no change in it; what breaks a call does.
"""

import inspect
import pkgutil
import re
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
    return str(inspect.Signature(bare))


def split_signature(line):
    """Return the name, the positional parameters and the others of a line."""
    name, _, signature = line.removesuffix(')').partition('(')
    parameters = re.split(r', (?=[*A-Za-z_])', signature)
    num_positional = next(
        (i for i, x in enumerate(parameters) if x.startswith('*')),
        len(parameters),
    )
    return name, parameters[:num_positional], parameters[num_positional:]


def breaks_calls(stored, present):
    """Check whether a call of one signature may fail or differ in another."""
    _, positional, others = split_signature(stored)
    _, new_positional, new_others = split_signature(present)
    num_positional = len(positional)
    added = {*new_positional[num_positional:], *new_others} - {*others}
    return (
        new_positional[:num_positional] != positional
        or not {*others} <= {*new_positional, *new_others, '*'}
        or not all('=' in x or x.startswith('*') for x in added)
    )


def test_public_api_keeps_names_and_calls():
    lines = [
        f'{name}{signature_of(thing)}'
        for module in ('mmclca', *MODULES)
        for name, thing in public_names(module)
    ]
    present = {split_signature(line)[0]: line for line in lines}
    stored = golden('api.txt', '\n'.join(lines) + '\n').splitlines()
    assert not [
        line
        for line in stored
        if (name := split_signature(line)[0]) not in present
        or breaks_calls(line, present[name])
    ]


@pytest.mark.parametrize(
    'present, expected',
    [
        ('f(a, b=1, *, c=2, **rest)', False),
        ('f(a, b=1, more=0, *, new=(1, 2), c=2, **rest)', False),
        ('f(a, more=0, b=1, *, c=2, **rest)', True),
        ('f(a, b=2, *, c=2, **rest)', True),
        ('f(a, b=1, *, c=2)', True),
        ('f(a, b=1, *, new, c=2, **rest)', True),
        ('f(a, b=1, *, c=3, **rest)', True),
    ],
)
def test_only_changes_that_break_calls_are_refused(present, expected):
    assert breaks_calls('f(a, b=1, *, c=2, **rest)', present) is expected


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
