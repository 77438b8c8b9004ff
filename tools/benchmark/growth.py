# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""How time and memory grow with the image size.

timm's plain ViT, EViT with keep rate 0.5 and EViT with keep rate 0.1 and
CLCA: time of an image, peak memory, and the exponents of the pixels that fit
them best, beside those of the multiply-accumulates; the share of attention
(its two products) in the multiply-accumulates and in the time.
"""

from mmclca import cli
from mmclca.cli.benchmark import (
    add_arch,
    add_img_size,
    add_rounds,
    add_setting,
)


def parse_args():
    parser = cli.Parser(description=__doc__.partition('\n\n')[2])
    add_arch(parser)
    add_img_size(parser, [224, 336, 448, 672, 896], 'sides of images')
    add_setting(parser, batch=2)
    add_rounds(parser, rounds=3, memory='always')
    args = parser.parse_args()
    from mmclca.cli.commands.growth import check

    check(parser, args)
    return args


main = cli.command('growth', parse_args)

if __name__ == '__main__':
    cli.run(main)
