# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Cases of newer reducers and of baselines, where they are at hand.

Cases and what draws their tensors lie beside the checkout, in
``shared/parity/newer``; without them all that imports this is skipped.
"""

import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / 'shared/parity/newer'
if not (FOLDER / 'cases.json').is_file():
    pytest.skip('no ../shared/parity/newer', allow_module_level=True)


def public():
    """The module that draws weights and inputs of the cases."""
    spec = spec_from_file_location('newer_weights', FOLDER / 'weights.py')
    sys.modules[spec.name] = module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


DRAWN = public()
CASES, SHAPES = DRAWN.load()


def each(system):
    found = [case for case in CASES if case['system'] == system]
    return pytest.mark.parametrize('case', found, ids=lambda c: c['name'])
