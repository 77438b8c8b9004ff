# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Count wording habits in all messages, and list the worst messages.

Reads ``raise``, ``warn``, ``error`` and help texts in ``mmclca`` and
``tools``, and report.html. Prints rates per 1,000 words for each package.
"""

import argparse
import ast
import re
from collections import Counter, defaultdict
from pathlib import Path

from check_prose import HABITS

NAMES, CALLS = ('*.py', 'report.html'), ('warn', 'warning', 'error')
HELP = {'add': 1, 'flag': 1}  # help text position in Parser's methods
KEYWORDS = 'help', 'meaning', 'description'
HABITS = {name: pattern for name, (pattern, _) in HABITS.items()}
MARKUP = r'(?s)<(style|script|svg)\b.*?</\1>|\{[%#{].*?[%#}]\}|<[^>]*>|&\w+;'


def text_of(node, constants):
    """Join the string literals of an expression; {} stands for a value."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else ''
    if isinstance(node, ast.FormattedValue):
        return '{}'
    if isinstance(node, ast.Name) and node.id in constants:
        return text_of(constants[node.id], {})
    inner = ast.iter_child_nodes(node)
    return ''.join(text_of(child, constants) for child in inner)


def messages_of(node):
    """Return the message expressions in a node."""
    if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
        return node.exc.args
    if not isinstance(node, ast.Call):
        return []
    name = vars(node.func).get('attr') or vars(node.func).get('id')
    first = 0 if name in CALLS else HELP.get(name, len(node.args))
    named = [word.value for word in node.keywords if word.arg in KEYWORDS]
    return node.args[first : first + 1] + named


def texts_of(file):
    """Yield line and text per message in a module or template."""
    text = file.read_text(encoding='utf-8')
    if file.suffix == '.html':
        text = re.sub(MARKUP, lambda x: '\n' * x[0].count('\n') or ' ', text)
        yield from enumerate(text.splitlines(), start=1)
        return
    tree = ast.parse(text)
    found = [x for x in tree.body if isinstance(x, ast.Assign)]
    known = {ast.unparse(x.targets[0]): x.value for x in found}
    for one in (x for node in ast.walk(tree) for x in messages_of(node)):
        yield one.lineno, text_of(one, known)


parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument('root', nargs='?', default='.', type=Path)
parser.add_argument('--worst', type=int, default=0, help='texts to show')
args = parser.parse_args()
counts, worst = defaultdict(Counter), []
tops = args.root / 'mmclca', args.root / 'tools'
files = [x for top in tops for end in NAMES for x in top.rglob(end)]
for file in files:
    place = file.relative_to(args.root)
    for line, text in texts_of(file):
        hits = {k: len(re.findall(x, text, re.I)) for k, x in HABITS.items()}
        if not (words := len(re.findall("[A-Za-z']+", text))):
            continue
        for name in ('/'.join(place.parent.parts[:2]), 'all'):
            counts[name].update(hits | dict(texts=1, words=words))
        score = sum(hits.values()) - hits['of'] - hits['that']
        worst.append((score, f'{place}:{line}: {" ".join(text.split())}'))
for name, n in sorted(counts.items(), key=lambda x: (x[0] == 'all', x[0])):
    rates = [f'{k} {1000 * n[k] / max(n["words"], 1):.1f}' for k in HABITS]
    print(f'{name:22}{n["texts"]:5} texts{n["words"]:6} words', *rates)
print(*(text for _, text in sorted(worst)[::-1][: args.worst]), sep='\n')
