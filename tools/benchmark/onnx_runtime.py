# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""ONNX Runtime's speed on the CPU beside that of PyTorch.

Each method is exported and timed, interleaved: PyTorch (eager), ONNX Runtime
in float32, and with 8-bit matrix products. Weights are random.
"""

from mmclca import cli
from mmclca.cli.arguments import keep_rate, positive
from mmclca.cli.benchmark import add_arch, add_clca, check_out
from mmclca.cli.choices import METHODS, PLAIN


def parse_args():
    parser = cli.Parser(description=__doc__)
    add_arch(parser)
    parser.add(
        '--methods',
        'of %(choices)s (default: all)',
        [PLAIN, *METHODS],
        nargs='+',
        choices=[PLAIN, *METHODS],
        metavar='NAME',
    )
    parser.add('--keep-rate', 'default: %(default)s', 0.5, type=keep_rate)
    add_clca(parser, default='yes')
    side = 'side of an image, a multiple of 16'
    parser.add('--img-size', side, 224, type=positive)
    parser.add('--batch', 'images in a batch', 8, type=positive)
    rounds = 'timed passes of each model, after two others'
    parser.add('--rounds', rounds, 7, type=positive)
    parser.add('--threads', 'threads', 1, type=positive)
    parser.add('--out', 'write PREFIX.md', metavar='PREFIX')
    args = parser.parse_args()
    from mmclca.benchmark.checks import check_img_size

    check_img_size(parser, args.img_size)
    check_out(parser, args.out, ('md',))
    return args


main = cli.command('onnx_runtime', parse_args)

if __name__ == '__main__':
    cli.run(main)
