# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Teach a model a class: ``mmclca add-class MODEL PHOTOGRAPHS``."""

from pathlib import Path

from .. import Parser, command
from .model import add_device, add_folder, model_of


def parse_args():
    parser = Parser(
        description='Teach a model that fit wrote one more class, or more '
        'photographs of a class, in seconds: the classifier is fitted again, '
        'the network stays as it is'
    )
    add_folder(parser)
    photographs = 'folder of photographs of one class'
    parser.add('photographs', photographs, type=Path)
    parser.add('--name', 'name of the class (default: that of the folder)')
    add_device(parser)
    args = parser.parse_args()
    model_of(parser, args.folder)
    return args


main = command('add_class', parse_args)
