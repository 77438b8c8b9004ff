# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""A room imports the rooms below it, and grows no larger than it is."""

import ast
from pathlib import Path

from tiny_run import ROOT, run_tool

import mmclca

PACKAGE = Path(mmclca.__file__).parent
ROOMS = (  # from the top
    'cli',
    'page',
    'fitting',
    'sweep',
    'benchmark',
    'engine',
    'apis',
    'visualization',
    'deployment',
    'evaluation',
    'datasets',
    'models',
    'checkpoints',
    'configs',
    'registry',
    'model_index',
    'utils',
    'dependencies',
    'version',
)
# Lines of code, as tools/dev/count_lines.py counts them. A number may only
# fall, in the commit in which the code does; a new model raises mmclca/models,
# with a word here that says by what: mmclca/models by looking.py, which was in
# mmclca/visualization; mmclca/utils by random_state.py, from there too, and
# by messages.py, which were lines of mmclca/models. mmclca/models again by ATC
# and its linkage (141), DiffRate and its rates (216), MCTF (92), PiToMe (69),
# PPT (50), ToFu (24), and num_tokens of every reducer; mmclca/page by a line
# for each new reducer, and by models that keep all squares; mmclca/deployment
# by graphs within graphs and the score of strangers, mmclca/evaluation by its
# threshold (40), mmclca/apis by what hands it on.
# mmclca/models by the heads that keep references, with what puts these into a
# model (84); by the baselines (500), and a load hook that was in
# mmclca/checkpoints (9). mmclca/models and mmclca/engine by training as
# Touvron's thesis does it: distillation, losses, LoRA, the scope of a
# fine-tuning and what is saved of it; with it mmclca/checkpoints by files that
# leave a part to a base (12), mmclca/datasets by ImageNet-V2 and timm's epochs
# (32), mmclca/evaluation by ReaL labels (29), mmclca/visualization by
# agreement (33), mmclca/cli by that and options of train.py and test.py (63).
# mmclca/checkpoints by architecture.py, which was in mmclca/fitting (135);
# mmclca/benchmark by times of what will run and files of 8-bit products (121),
# mmclca/cli by that and --explain (47), mmclca/datasets by series (75),
# mmclca/apis by views (28), tools/research by what fit tells, training
# gains, calibration, fine-tuning and drawn cultivars (330).
# mmclca/models by Grafit, mmclca/engine by the hook of its bank,
# mmclca/datasets by data with levels, mmclca/evaluation, mmclca/apis,
# mmclca/visualization and mmclca/cli by what is measured of and drawn from
# representations.
# mmclca/models and mmclca/checkpoints again by pre-training: masked
# autoencoders, MIRL, what they are distilled by, and the names of releases;
# mmclca/visualization (56), mmclca/engine (34), mmclca/cli (19) and tools (3)
# by pictures of what these reconstruct, and norms of gradients by segment;
# tools/research by long-tailed lists (37).
# mmclca/page (38) and mmclca/cli by images of a gallery, mmclca/checkpoints by
# a distillation token of plain weights (11), mmclca/models by what a teacher
# and the baselines refuse (74) and tuning.py, which was in mmclca/engine,
# mmclca/visualization and mmclca/apis by names of classes in agreement and
# LoRA that is opened (10).
# mmclca/visualization (44), mmclca/apis, mmclca/cli, mmclca/datasets and
# mmclca/models by what studies of layers, levels and banks refuse in a line,
# and figures in which heads and layers can be told apart; mmclca/apis by
# colours of coarse classes and memory too.
# mmclca/checkpoints (69) by heads that shapes do not tell, read from decoders
# and said where they differ, and relative positions of another grid;
# mmclca/models by what pre-training refuses in a line.
BUDGET = {
    'mmclca': 177,
    'mmclca/apis': 1428,
    'mmclca/benchmark': 935,
    'mmclca/checkpoints': 1591,
    'mmclca/cli': 2961,
    'mmclca/datasets': 2742,
    'mmclca/deployment': 343,
    'mmclca/engine': 903,
    'mmclca/evaluation': 454,
    'mmclca/fitting': 1350,
    'mmclca/models': 6482,
    'mmclca/page': 501,
    'mmclca/sweep': 781,
    'mmclca/utils': 256,
    'mmclca/visualization': 1213,
    'tools': 543,
    'tools/research': 952,
    'tests': 29605,
}


def room(module):
    """The part of a name that says where it is, '' for the package."""
    return (*module.split('.'), '')[1]


def imported(file):
    """Names of all modules here that a file imports, anywhere in it."""
    package = ('mmclca', *file.relative_to(PACKAGE).parent.parts)
    for node in ast.walk(ast.parse(file.read_text(encoding='utf-8'))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        if isinstance(node, ast.Call) and ast.unparse(node.func) == 'lazy':
            yield node.args[0].value
        if isinstance(node, ast.ImportFrom):
            start = package[: len(package) + 1 - node.level]
            source = '.'.join(start) if node.level else ''
            source = '.'.join(filter(None, (source, node.module)))
            yield source
            if source == 'mmclca':  # from mmclca import room
                yield from (f'mmclca.{alias.name}' for alias in node.names)


def test_every_room_has_its_level():
    found = {path.stem for path in PACKAGE.iterdir() if path.stem[0] != '_'}
    assert found - {'', '.mim'} == {*ROOMS}


def test_imports_go_downward():
    upward = [
        f'{file.relative_to(PACKAGE)} imports {name}'
        for file in sorted(PACKAGE.glob('*/**/*.py'))
        for name in imported(file)
        if name.split('.')[0] == 'mmclca'
        and room(name) in ROOMS
        and ROOMS.index(room(name))
        < ROOMS.index(file.relative_to(PACKAGE).parts[0])
    ]
    assert not upward


def test_rooms_keep_to_their_budgets(monkeypatch, capsys):
    run_tool(monkeypatch, ROOT / 'tools/dev/count_lines.py')
    *rows, _ = map(str.split, capsys.readouterr().out.splitlines())
    lines = {room: int(lines) for room, _, lines in rows}
    assert lines.keys() == BUDGET.keys()
    over = {room: n for room, n in lines.items() if n > BUDGET[room]}
    assert not over, 'more lines than BUDGET has: take as many out again'
    under = {
        room: n
        for room, n in lines.items()
        if n < BUDGET[room] - max(10, BUDGET[room] // 50)
    }
    assert not under, 'BUDGET may only fall: write these numbers into it'
