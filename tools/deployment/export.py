# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Export a model: ``export.py [CONFIG] CHECKPOINT``."""

from pathlib import Path

from mmclca import cli
from mmclca.cli.arguments import add_cfg_options, check_file
from mmclca.cli.choices import OLDEST_OPSET


def parse_args():
    parser = cli.Parser(
        description='Write a trained model as one file that runs without '
        'mmclca: from normalized images (B, 3, H, W), float32, any B, to '
        'logits (B, classes). The file holds the preparation of images, the '
        'class names and the config too. It is kept only if its logits are '
        'those of PyTorch; int8 files are made of one that passed'
    )
    parser.add(
        'config',
        'path or name of a config (without, the one in the checkpoint)',
        nargs='?',
    )
    parser.add('checkpoint', 'path or URL of the weights')
    parser.add(
        '--format',
        'ONNX, or what torch.export.load reads',
        'onnx',
        choices=['onnx', 'pt2'],
    )
    parser.add(
        '--out',
        'the file to write (default: the name of the checkpoint with the '
        'ending of the format, in its folder)',
        type=Path,
    )
    parser.add(
        '--opset',
        f"version of ONNX's operators (default: {OLDEST_OPSET})",
        type=int,
    )
    parser.flag(
        '--int8',
        '8-bit matrix products in the ONNX file (dynamic quantization): '
        'smaller, other logits',
    )
    parser.add(
        '--reject',
        'file of open_set.py: it says what is of no known class',
        type=Path,
        metavar='THRESHOLD.json',
    )
    add_cfg_options(parser)
    args = parser.parse_args()
    check(parser, args)
    return args


def check(parser, args):
    if args.format == 'pt2' and (args.int8 or args.opset):
        parser.error('--int8 and --opset are of --format onnx')
    if args.opset and args.opset < OLDEST_OPSET:
        parser.error(f'--opset {args.opset}: at least {OLDEST_OPSET}')
    if args.out and args.out.suffix != f'.{args.format}':
        parser.error(f'--out {args.out}: the name must end in .{args.format}')
    if args.out:
        check_file(parser, args.out)


main = cli.command('export', parse_args)

if __name__ == '__main__':
    cli.run(main)
