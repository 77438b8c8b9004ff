# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Seed faults in the package and count how many its tests catch.

    python tools/dev/mutate.py [--seed 0] [--root CHECKOUT] [PACKAGE ...]

Each fault changes one operator or constant in a copy of the files that git
tracks, as staged. Only the quick tests of the changed package run, and stop at
the first failure. A fault is also caught if they take three times as long as
without it, as in an endless loop.
"""

import argparse
import ast
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

# faults per package, in proportion to their lines; the same for any commit
FAULTS = dict(
    apis=5, benchmark=3, checkpoints=6, cli=6, datasets=8, deployment=2,
    engine=4, evaluation=3, fitting=6, models=9, page=2, sweep=3, utils=1,
    visualization=2,
)  # fmt: skip
TESTS = dict(cli=['tests/test_cli', 'tests/test_tools'])
SWAPS = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
    ast.Div: ast.Mult,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.And: ast.Or,
    ast.Or: ast.And,
}


def changes(tree):
    """List the possible faults: a node, its field and another value."""
    faults = []
    for node in ast.walk(tree):
        node_class = type(node)
        if node_class in (ast.BinOp, ast.BoolOp) and type(node.op) in SWAPS:
            faults.append((node, 'op', SWAPS[type(node.op)]()))
        elif node_class is ast.Compare and type(node.ops[0]) in SWAPS:
            ops = [SWAPS[type(node.ops[0])](), *node.ops[1:]]
            faults.append((node, 'ops', ops))
        elif node_class is ast.Constant and type(node.value) is bool:
            faults.append((node, 'value', not node.value))
        elif node_class is ast.Constant and type(node.value) is int:
            faults.append((node, 'value', node.value + 1))
    return faults


def mutated(path, rng):
    """Change one place in a file; return its line and the change, or None."""
    tree = ast.parse(path.read_text('utf-8'))
    faults = changes(tree)
    if not faults:
        return None
    node, field, value = rng.choice(faults)
    before = ast.unparse(node)
    setattr(node, field, value)
    path.write_text(ast.unparse(tree), 'utf-8')
    return f'{path.name}:{node.lineno}  {before}  ->  {ast.unparse(node)}'


def outcome(root, package, seconds=None):
    """Run a package's tests; return 'caught', 'too slow' or 'survived'."""
    command = [sys.executable, '-m', 'pytest', '-q', '-x', '-p', 'no:randomly']
    quick = 'not (slow or gpu or alone or hostile)'
    command += ['-p', 'no:cacheprovider', '-m', quick]
    command += TESTS.get(package, [f'tests/test_{package}'])
    env = dict(os.environ, PYTHONPATH=str(root), OMP_NUM_THREADS='1')
    quiet = dict(stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    with subprocess.Popen(
        command, cwd=root, env=env, start_new_session=True, **quiet
    ) as tests:
        try:
            return 'caught' if tests.wait(seconds) else 'survived'
        except subprocess.TimeoutExpired:
            return 'too slow'
        finally:
            if tests.poll() is None:
                os.killpg(tests.pid, signal.SIGKILL)  # with their children


def seconds_without_fault(root, package):
    """Return the seconds of the tests, which must pass without a fault."""
    began = time.monotonic()
    if outcome(root, package) != 'survived':
        raise SystemExit(f'{package}: the tests fail without a fault')
    return time.monotonic() - began


def survey(root, package, rng):
    """Seed the faults of a package; yield each change and its outcome."""
    seconds = seconds_without_fault(root, package)
    files = sorted(root.glob(f'mmclca/{package}/**/*.py'))
    left = FAULTS[package]
    while left:
        path = rng.choice(files)
        source = path.read_text('utf-8')
        change = mutated(path, rng)
        if change is None:
            continue
        yield change, outcome(root, package, 3 * seconds)
        path.write_text(source, 'utf-8')
        left -= 1


def main():
    """Seed the faults and print which are caught."""
    parser = argparse.ArgumentParser(description=__doc__.partition('\n')[0])
    parser.add_argument('packages', nargs='*', help='packages [all]')
    parser.add_argument('--seed', type=int, default=0, help='seed [0]')
    parser.add_argument('--root', default='.', help='checkout [.]')
    args = parser.parse_args()
    caught, total = Counter(), Counter()
    for package in args.packages or FAULTS:
        rng = random.Random(f'{args.seed} {package}')
        with TemporaryDirectory() as folder:
            command = ['checkout-index', '--all', f'--prefix={folder}/']
            subprocess.run(['git', '-C', args.root, *command], check=True)
            for change, word in survey(Path(folder), package, rng):
                total[package] += 1
                caught[package] += word != 'survived'
                print(f'{word:8}  {package}/{change}', flush=True)
    for package, number in total.items():
        print(f'{package:15} {caught[package]:3} of {number}')
    print(f'seed {args.seed}: {caught.total()} of {total.total()} caught')


if __name__ == '__main__':
    main()
