# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Fit a model to photographs: ``python -m mmclca fit PHOTOGRAPHS``."""

from pathlib import Path

from .. import Parser, plain_errors
from ..arguments import whole_number
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
        'folder with a folder per class, or with train, val and test folders',
        type=Path,
    )
    out = 'folder of the model'
    parser.add('--out MODEL', out, Path('model'), type=Path)
    parser.add(
        '--budget',
        'cost per photo, such as 0.5GMACs, 20ms or best (default: half of '
        'the full ViT)',
    )
    parser.add(
        '--runtime',
        'runtime for times (default: onnx if installed, on a GPU pytorch)',
        choices=['onnx', 'pytorch'],
    )
    parser.add(
        '--weights FILE',
        'ViT, DeiT or DINOv2 weights, or timm://NAME (default: DeiT-Tiny)',
    )
    parser.add(
        '--pixels',
        'normalization for --weights (default: that of timm)',
        choices=['imagenet', 'half'],
    )
    parser.add(
        '--labels TABLE',
        'table of file and class: .csv, .tsv, .xlsx or .ods',
        type=Path,
    )
    parser.add(
        '--groups',
        'photos to keep together, such as those of a plant: a regular '
        'expression for their paths, or a column of the table',
    )
    parser.add('--folds', 'parts for the estimate', 5, type=whole_number(2))
    parser.share('--class-weights')
    parser.flag('--best', 'short for --budget best')
    parser.add(
        '--coarse TABLE',
        'table of classes and coarse classes, .csv with titles',
    )
    parser.flag('--explain', 'list the candidates and compare the full ViT')
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
