# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Fit the last layer of a frozen model to images, in seconds.

python tools/probe.py CONFIG --weights WEIGHTS --images photos/ --out probe.pth
"""

from pathlib import Path

from mmclca import cli
from mmclca.cli.arguments import (
    add_model_arguments,
    check_file,
    file_named,
    keep_rate,
    positive,
    whole,
)
from mmclca.cli.choices import CLASSIFIERS, METHODS, OUT_TYPES


def parse_args():
    parser = cli.Parser(
        description='Fit a classifier in closed form to what a frozen model '
        'makes of images, tell by folds how good it is, and write a '
        'checkpoint that all tools take'
    )
    parser.add(
        'model',
        'a config (path or name) of a classifier, or a checkpoint that holds '
        'its config',
    )
    parser.add(
        '--weights',
        'path or address of the weights, or timm://NAME (default: those of '
        'the checkpoint, or load_from of the config)',
    )
    add_images(parser)
    add_variant(parser)
    add_classifier(parser)
    out = 'checkpoint to write'
    parser.add('--out', out, Path('probe.pth'), type=file_named('.pth'))
    add_model_arguments(parser)
    args = parser.parse_args()
    check(parser, args)
    return args


def add_images(parser):
    parser.add(
        '--images',
        'a folder with a folder a class, a table (.csv, .tsv, .xlsx, .ods) '
        'of files and classes, or a .txt list of "path label" (default: the '
        'training split of the config)',
        metavar='PLACE',
    )
    parser.add(
        '--groups',
        'images of one thing, such as a plant, which stay in one fold: a '
        'regular expression that is searched for in each path (its first '
        'group counts, else all of it), or a column of the table',
        metavar='REGEX',
    )
    parser.add(
        '--test',
        'images to measure the result on once: a folder, a .txt list, or '
        'val or test for a split of the config',
        metavar='PLACE',
    )
    parser.add(
        '--cache',
        'folder to keep features in: no image goes through a model twice',
        type=Path,
        metavar='DIR',
    )
    parser.add('--batch-size', 'images at a time', 32, type=positive)


def add_variant(parser):
    parser.add(
        '--layers',
        'layers, from 0, to classify by (default: what the head of the model '
        'reads, or with --out-type the first three quarters)',
        nargs='+',
        type=whole,
        metavar='N',
    )
    parser.add(
        '--out-type',
        'what to take of each layer: average of the tokens left, CLS or both '
        '(default: average with --layers)',
        choices=OUT_TYPES,
    )
    parser.add(
        '--method',
        'reduce tokens by this one (default: as the model does)',
        choices=METHODS,
        metavar='NAME',
    )
    parser.add('--keep-rate', 'of --method', type=keep_rate, metavar='RATE')


def add_classifier(parser):
    parser.add(
        '--classifier',
        'ridge regression, shrinkage LDA, logistic regression or nearest '
        'class mean',
        CLASSIFIERS[0],
        choices=CLASSIFIERS,
    )
    parser.add('--folds', 'parts that the images are cut into', 5, type=folds)
    parser.add('--repeats', 'how often they are cut', 5, type=positive)
    parser.add(
        '--class-weights',
        'balanced: classes count alike, whatever their number of images '
        '(default: images do)',
        choices=['balanced'],
    )


def folds(text):
    """A number of folds."""
    positive(text)
    if int(text) < 2:
        raise ValueError
    return int(text)


def check(parser, args):
    if args.keep_rate and not args.method:
        parser.error('--keep-rate needs --method, such as EViT')
    listed = (args.images or '.txt').endswith('.txt')
    if args.groups and listed:
        parser.error('--groups needs --images with a folder or a table')
    check_file(parser, args.out)


main = cli.command('probe', parse_args)

if __name__ == '__main__':
    cli.run(main)
