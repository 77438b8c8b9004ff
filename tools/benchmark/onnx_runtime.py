# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""ONNX Runtime's speed on the CPU beside that of PyTorch.

Each method is exported and timed, interleaved: PyTorch (eager), ONNX Runtime
in float32, and with 8-bit matrix products. Weights are random.
"""

from mmclca import cli
from mmclca.cli.arguments import add_option
from mmclca.cli.benchmark import (
    add_arch,
    add_clca,
    check_out,
    keep_rate,
    positive,
)
from mmclca.cli.choices import METHODS, PLAIN


def parse_args():
    parser = cli.Parser(description=' '.join(__doc__.split()))
    add_arch(parser)
    parser.add_argument(
        '--methods',
        nargs='+',
        default=[PLAIN, *METHODS],
        choices=[PLAIN, *METHODS],
        metavar='NAME',
        help='of %(choices)s (default: all)',
    )
    parser.add_argument(
        '--keep-rate', type=keep_rate, default=0.5, help='default: %(default)s'
    )
    add_clca(parser, default='yes')
    for name, default, meaning in (
        ('--img-size', 224, 'side of an image, a multiple of 16'),
        ('--batch', 8, 'images in a batch'),
        ('--rounds', 7, 'timed passes of each model, after two others'),
        ('--threads', 1, 'threads'),
    ):
        add_option(parser, name, default, meaning, type=positive)
    parser.add_argument('--out', metavar='PREFIX', help='write PREFIX.md')
    args = parser.parse_args()
    from mmclca.benchmark.checks import check_img_size

    check_img_size(parser, args.img_size)
    check_out(parser, args.out, ('md',))
    return args


def main():
    args = parse_args()
    from mmclca.cli.commands import onnx_runtime

    onnx_runtime.main(args)


if __name__ == '__main__':
    cli.run(main)
