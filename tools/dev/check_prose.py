# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Check docstrings and comments for wording that readers have to decode.

Prints the rate of each habit per 1,000 words, for the whole project and for
each package with more than 2,000 words. Fails if a rate is above its limit.
"""

import argparse
import ast
import io
import re
import tokenize
from collections import Counter, defaultdict
from pathlib import Path

# pattern and limit per 1,000 words, about the rates of mmpretrain and timm
HABITS = dict(
    what=(r'\bwhat(ever)?\b', 1),
    that=(r'\bthat\b', 5),
    of=(r'\bof\b', 36),
    those=(r'\b(those|others)\b', 1),
    of_it=(r'\bof (it|its own|these|those|them|which|what)\b', 0.8),
    is_no=(r'\b(is|are|has|have|was|were) (no|none)\b', 0.8),
    is_of=(r'\b(is|are|was|were) of\b', 0.3),
    per=(
        r'\b(images?|photographs?|photos?|lines?|times?|one|values?|entry|'
        r'numbers?|milliseconds|ms|tokens?) an? [a-z]+\b',
        0.3,
    ),
    coined=(
        r'\b(anew|strangers?|told|tells?|as it came|goes? on|alike|beside|'
        r'watchers?|what is left|survivors?|riddles?|arms?|hang on|mend|'
        r'of before|by what|whoever|whichever)\b',
        1.5,
    ),
)
FEWEST_WORDS = 2000
DOCUMENTED = ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef


def list_texts(file):
    """Yield the docstrings and comments of a module."""
    source = file.read_text(encoding='utf-8')
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, DOCUMENTED):
            yield ast.get_docstring(node) or ''
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.string


def get_package(file):
    """Return ``mmclca/PACKAGE``, ``tools`` or ``tests``."""
    parts = file.parent.parts
    return '/'.join(parts[:2] if parts[0] == 'mmclca' else parts[:1])


def count(files):
    """Count words and habits per package, and in ``all``."""
    counts = defaultdict(Counter)
    for file in files:
        for sentence in list_texts(file):
            habits = Counter(words=len(re.findall(r"[A-Za-z']+", sentence)))
            for name, (pattern, _) in HABITS.items():
                habits[name] = len(
                    re.findall(pattern, sentence, re.IGNORECASE)
                )
            counts[get_package(file)].update(habits)
            counts['all'].update(habits)
    return counts


def main():
    """Print the rates; exit with 1 if one is above its limit."""
    argparse.ArgumentParser(
        description=__doc__.partition('\n')[0]
    ).parse_args()
    folders = ('mmclca', 'tools', 'tests')
    files = [x for top in folders for x in sorted(Path(top).rglob('*.py'))]
    above = 0
    for package, counts in sorted(count(files).items()):
        number, cells = counts['words'], []
        for name, (_, limit) in HABITS.items():
            rate = 1000 * counts[name] / max(number, 1)
            is_above = rate > limit and number > FEWEST_WORDS
            above += is_above
            cells.append(f'{name} {rate:.1f}{"*" * is_above}')
        print(f'{package:22} {number:6} words  {"  ".join(cells)}')
    print(f'{above} rates above their limits (*)')
    raise SystemExit(bool(above))


if __name__ == '__main__':
    main()
