# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Write a model as one file: ``mmclca export MODEL``."""

from .. import Parser, command
from ..arguments import check_file, file_named
from .model import add_folder, model_of, threshold_of


def parse_args():
    parser = Parser(
        description='Write a model that fit wrote as one ONNX file, which '
        'runs without mmclca. It holds the preparation of photographs and '
        'the class names too'
    )
    add_folder(parser)
    out = 'the file to write (default: model.onnx in the folder)'
    parser.add('--out', out, type=file_named('.onnx'), metavar='FILE')
    parser.flag('--int8', '8-bit matrix products: smaller, other logits')
    parser.set_defaults(config=None, cfg_options={}, format='onnx', opset=None)
    args = parser.parse_args()
    args.checkpoint = model_of(parser, args.folder)
    args.reject = threshold_of(args.folder)
    if args.out:
        check_file(parser, args.out)
    return args


main = command('export', parse_args)
