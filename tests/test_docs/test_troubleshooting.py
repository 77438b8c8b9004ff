# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""docs/troubleshooting.md shows messages as the package writes them."""

import ast
import re

import pytest
from tiny_run import ROOT

PAGE = ROOT / 'docs/troubleshooting.md'
MESSAGES = [
    ' '.join(text.split())
    for text in re.findall(r'```text\n(.*?)```', PAGE.read_text(), re.DOTALL)
    if not text.startswith('--cfg-options')
]
# begin messages of other packages and of systems
OTHERS = (
    "ModuleNotFoundError: No module named 'mmengine'",
    'ImportError: libGL',
    'train.py: error: ...: ``AmpOptimizerWrapper``',
    'torch.OutOfMemoryError',
    'ERROR: Unexpected bus error',
    'DistNetworkError',
)
LEAST = 20  # letters by which a text is known


def parts_of(node):
    """What is fixed in a text of the source."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return [node.value]
    if isinstance(node, ast.JoinedStr):
        return sum(map(parts_of, node.values), [])
    return []


def texts():
    """What is fixed in each text of the package."""
    for file in ROOT.glob('mmclca/**/*.py'):
        for node in ast.walk(ast.parse(file.read_text(encoding='utf-8'))):
            parts = [' '.join(part.split()) for part in parts_of(node)]
            if sum(map(len, parts)) >= LEAST:
                yield tuple(parts)


TEXTS = {*texts()}


@pytest.mark.parametrize('message', MESSAGES)
def test_message_is_one_of_the_package(message):
    others = [start for start in OTHERS if message.startswith(start)]
    ours = [text for text in TEXTS if all(part in message for part in text)]
    assert bool(ours) != bool(others), message


def test_others_are_on_the_page():
    for start in OTHERS:
        assert any(text.startswith(start) for text in MESSAGES), start
