# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Registered classes show their settings to editors and help()."""

import inspect
from inspect import Parameter

import pytest

import mmclca.registry

VARIABLE = (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)


def list_registered_classes():
    for registry in vars(mmclca.registry).values():
        if not hasattr(registry, 'module_dict'):
            continue
        registry.import_from_location()
        for registered in registry.module_dict.values():
            if inspect.isclass(registered) and is_of_package(registered):
                yield registered


def is_of_package(registered):
    return registered.__module__.startswith('mmclca.')


CLASSES = sorted({*list_registered_classes()}, key=lambda x: x.__qualname__)


def get_parameters(owner):
    _, *parameters = inspect.signature(owner.__init__).parameters.values()
    return parameters


def list_settings(owner):
    return {x.name for x in get_parameters(owner) if x.kind not in VARIABLE}


@pytest.fixture(params=CLASSES, ids=lambda x: x.__qualname__)
def owners(request):
    """Return the classes that define ``__init__``, from a registered class."""
    owners = [x for x in request.param.__mro__ if '__init__' in vars(x)]
    if not is_of_package(owners[0]):
        pytest.skip('constructor of another package')
    return owners


def test_constructor_annotates_its_settings(owners):
    missing = [
        parameter.name
        for parameter in get_parameters(owners[0])
        if parameter.kind not in VARIABLE
        and parameter.annotation is Parameter.empty
    ]
    assert not missing


def test_constructor_lists_settings_of_this_package(owners):
    owner, *bases = owners
    kinds = {parameter.kind for parameter in get_parameters(owner)}
    assert Parameter.VAR_POSITIONAL not in kinds
    if Parameter.VAR_KEYWORD not in kinds:
        return
    settings = list_settings(owner)
    for base in bases:
        if not is_of_package(base):
            # the keywords are settings of another package
            assert list_settings(base) - settings
            return
        assert list_settings(base) <= settings
