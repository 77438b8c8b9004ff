# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Numbers of public code, where they are at hand.

Cases and what draws their tensors lie beside the checkout, in
``shared/parity``; without them all that asks for them is skipped.
"""

import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

SHARED = Path(__file__).parents[2] / 'shared/parity'


def public(name):
    """The module that draws weights and inputs of a folder of cases."""
    folder = SHARED / name
    if not (folder / 'cases.json').is_file():
        pytest.skip(f'no ../shared/parity/{name}', allow_module_level=True)
    spec = spec_from_file_location(f'{name}_weights', folder / 'weights.py')
    sys.modules[spec.name] = module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def by_system(cases, *systems):
    """Parametrize a test by the cases of some systems."""
    found = [case for case in cases if case['system'] in systems]
    return pytest.mark.parametrize('case', found, ids=lambda c: c['name'])
