# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Fit a model to photographs: ``python -m mmclca fit PHOTOGRAPHS``."""

from pathlib import Path

from .. import Parser, plain_errors
from ..arguments import number
from ..packages import fitting


def parse_args():
    parser = Parser(
        description='Fit a model to photographs. Says in seconds how good it '
        'is, trains it where that pays, and writes a folder that the other '
        'verbs take. Interrupted, the same command goes on',
        go_on='the same command goes on',
    )
    parser.add(
        'photographs',
        'a folder with a folder a class, or with train, val and test folders '
        'of them; with --labels the folder that its paths are in',
        type=Path,
    )
    out = 'folder of the model'
    parser.add('--out MODEL', out, Path('model'), type=Path)
    parser.add(
        '--budget',
        'what a photograph may cost, such as 0.5GMACs or 20ms (on this '
        'machine), or best; the first of the candidates within it is taken, '
        'which --explain lists (default: half of the whole transformer)',
    )
    parser.add(
        '--runtime',
        'what times are measured in (default: ONNX Runtime where it is '
        'installed, on a GPU PyTorch)',
        choices=['onnx', 'pytorch'],
    )
    parser.add(
        '--weights FILE',
        'a file of ViT, DeiT or DINOv2 weights, or timm://NAME (default: '
        "DeiT-Tiny's, from the cache of timm or the network)",
    )
    parser.add(
        '--pixels',
        'how the photographs that these weights know were normalized '
        "(default: as timm says of the weights' name)",
        choices=['imagenet', 'half'],
    )
    parser.add(
        '--labels TABLE',
        'table of file and class: .csv, .tsv, .xlsx or .ods',
        type=Path,
    )
    parser.add(
        '--groups',
        'photographs of one thing, such as a plant, that are not to be in '
        'training and test both: a regular expression for their paths, or a '
        'column of the table',
    )
    parser.add('--folds', 'parts for the estimate', 5, type=number(2))
    parser.share('--class-weights')
    parser.flag('--best', 'short for --budget best')
    parser.add(
        '--coarse TABLE',
        'classes, such as cultivars, and coarse ones, such as species: says '
        'how well both are found (.csv with titles)',
    )
    parser.flag(
        '--explain',
        'say why the model was chosen, and what all tokens would give',
    )
    parser.flag('--probe-only', 'do not train: an answer in seconds')
    parser.flag('--overwrite', 'replace what another fit has written')
    parser.share('--device')
    args = parser.parse_args()
    if args.best and args.budget:
        parser.error('--best is --budget best: give one of the two')
    if args.best:
        args.budget = 'best'
    del args.best
    return args


def main(args):
    with plain_errors():
        fitting.fit(**vars(args))
