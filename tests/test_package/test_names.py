# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Each public name is defined in one module."""

import ast
from collections import defaultdict
from pathlib import Path

import mmclca

PACKAGE = Path(mmclca.__file__).parent
# functions of commands are private to their program
FILES = [
    path
    for path in sorted(PACKAGE.rglob('*.py'))
    if not {'commands', 'pictures'} & {*path.parts}
]
# interfaces, whose functions are called by way of their module: `main` of a
# program, and `write` of an export format
INTERFACES = {'main', 'write'}
DEFINED = (ast.FunctionDef, ast.ClassDef)


def test_public_name_is_defined_once():
    homes = defaultdict(list)
    for path in FILES:
        for node in ast.parse(path.read_text(encoding='utf-8')).body:
            if isinstance(node, DEFINED) and not node.name.startswith('_'):
                homes[node.name].append(path.relative_to(PACKAGE).as_posix())
    twice = {
        name: files
        for name, files in homes.items()
        if len(files) > 1 and name not in INTERFACES
    }
    assert not twice
