# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Train a classifier on photos: estimate its accuracy in seconds, fine-tune
with enough photos, write a model folder. Run the same command again to resume.

``python -m mmclca fit PHOTOS``
"""

from pathlib import Path

from .. import model_files
from ..listing import Listing

LISTING = Listing(
    'fit and use', 'train a classifier (one folder of photos per class)', 'fit'
)


def add_arguments(parser):
    parser.advice = 'Run the same command to resume.'
    parser.add(
        'photos',
        'folder with one folder per class, or with train, val, test folders',
        type=Path,
    )
    out = 'model folder to write'
    parser.add('--out MODEL', out, Path('model'), type=Path)
    parser.add(
        '--name',
        'title of the report (default: name of the model or photo folder)',
    )
    budget = parser.add_mutually_exclusive_group()
    budget.add_argument(
        '--budget',
        help='maximum cost per photo, e.g. 0.5GMACs, 20ms or best (default: '
        'about half the full ViT)',
    )
    most = 'full ViT without a cost limit, same as --budget best'
    best = dict(action='store_const', const='best', dest='budget')
    budget.add_argument('--best', help=most, **best)
    parser.add(
        '--runtime',
        'runtime for latency (default: onnx if installed, pytorch on a GPU)',
        choices=['onnx', 'pytorch'],
    )
    parser.add(
        '--weights FILE',
        'pretrained weights (.pth, .safetensors, .npz) or timm://NAME; repeat '
        'to compare several and keep the most accurate (default: ViT-Tiny)',
        action='append',
    )
    parser.add(
        '--arch NAME',
        'timm model name, one per --weights (default: inferred from the file)',
        action='append',
    )
    parser.add(
        '--pixels',
        'normalization used in pre-training: that of ImageNet, or mean and '
        'standard deviation 0.5 (default: from timm)',
        choices=['imagenet', 'half'],
    )
    parser.add(
        '--labels TABLE',
        'table of files and classes: .csv, .tsv, .xlsx or .ods',
        type=Path,
    )
    parser.add(
        '--groups REGEX',
        'photos kept in one fold, e.g. per plant: regex for paths, or table '
        'column',
    )
    parser.share('--folds')
    parser.share('--class-weights')
    parser.add(
        '--coarse TABLE',
        'table of classes and coarse classes, .csv with column titles',
    )
    parser.flag(
        '--compare',
        'table of candidate models, compared with the full ViT on your photos',
    )
    tuning = parser.add_mutually_exclusive_group()
    yes = dict(action='store_true')
    tuning.add_argument(
        '--fine-tune',
        help='fine-tune the backbone with any number of photos (default: '
        'with at least 200)',
        **yes,
    )
    only = 'linear probe without fine-tuning'
    tuning.add_argument('--probe-only', help=only, **yes)
    parser.flag('--overwrite', 'replace an existing model')
    parser.share('--device')


def main(args):
    with model_files.loading():
        from mmclca.fitting import fit
        from mmclca.fitting.log import redirected_output
    with redirected_output():
        fit(**vars(args))
