# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Count code lines per package, without docstrings, comments and blanks.

``python tools/dev/count_lines.py`` prints files and lines per package.
"""

import ast
import io
import tokenize
from pathlib import Path

from mmclca import cli

ROOT = Path(__file__).resolve().parents[2]
SILENT = (
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
)
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def count_code_lines(source):
    """Count the code lines in a source text."""
    used, docstrings = set(), set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in SILENT:
            used.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, DOCUMENTED) and ast.get_docstring(node, False):
            first = node.body[0]
            docstrings.update(range(first.lineno, first.end_lineno + 1))
    return len(used - docstrings)


def get_package(file):
    """Return the package for the lines of a file."""
    parts = file.parent.parts
    for package in ('tools/research', 'tools/dev/pictures'):
        if package in file.parent.as_posix():
            return package
    return '/'.join(parts[:2]) if parts[0] == 'mmclca' else parts[0]


def count_packages(*folders):
    """Return numbers of files and lines by package in folders."""
    counted = {}
    for top in folders:
        for file in sorted((ROOT / top).rglob('*.py')):
            package = get_package(file.relative_to(ROOT))
            files, lines = counted.get(package, (0, 0))
            number = count_code_lines(file.read_text(encoding='utf-8'))
            counted[package] = files + 1, lines + number
    return counted


def main():
    cli.Parser(description=__doc__.partition('\n')[0]).parse_args()
    counted = count_packages('mmclca', 'tools', 'tests')
    for package, (files, lines) in counted.items():
        print(f'{package:22}{files:6}{lines:8}')
    apart = ('tests', 'tools/research')
    product = [counted[package] for package in counted if package not in apart]
    files, lines = map(sum, zip(*product, strict=True))
    print(f'{"all":22}{files:6}{lines:8}  without {" and ".join(apart)}')


if __name__ == '__main__':
    cli.run(main)
