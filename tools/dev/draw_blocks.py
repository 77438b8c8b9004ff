# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Draw docs/pictures/blocks.png: stems, tokens, plain and parallel layers.

``python tools/dev/draw_blocks.py`` counts every number on the picture in the
models themselves.
"""

from pathlib import Path

from mmclca import cli
from mmclca.cli.diagram import (
    BLUE,
    HIGH,
    MARGIN,
    ORANGE,
    PURPLE,
    SKY,
    YELLOW,
    arrow,
    boxed,
    draw_residual,
    line,
    mark_reducer,
    write,
    write_picture,
)

ROOT = Path(__file__).resolve().parents[2]
SIZE, BRANCHES = 224, 2
ARCH = dict(
    embed_dims=384, num_layers=2, num_heads=6, feedforward_channels=1536
)  # two layers of ViT-S
HMLP = dict(type='mmclca.HMLPStem', norm_cfg=dict(type='BN'))
WIDE = 1.6  # of the boxes of branches
STEP = 1.5  # the height of a residual step
STEM_WIDE, STEM_STEP, TOKENS = 2.4, 0.95, 3.2  # the tokens are at this height
BELOW = -0.75  # the words below the columns


def build(**options):
    """A ViT of two branches of ViT-S, on the meta device."""
    import torch

    from mmclca.registry import MODELS

    config = dict(type='mmclca.TokenReductionViT', arch=ARCH, img_size=SIZE)
    with torch.device('meta'):
        return MODELS.build(dict(config, patch_size=16, **options))


def millions(module):
    """The parameters of a module, as on the picture."""
    count = sum(p.numel() for p in module.parameters())
    return f'{count / 1e6:.2f} M parameters'


def draw_layers(axes, x, title, steps, below):
    """A stream upwards through residual steps; what it is, what it has."""
    top = len(steps) * STEP
    line(axes, (x, x), (-0.4, top - 0.3))
    arrow(axes, x, top - 0.3, top + 0.1)
    for number, (labels, colour) in enumerate(steps):
        branches = [[(label, colour)] for label in labels]
        draw_residual(axes, x, number * STEP, branches, WIDE)
        if colour == BLUE:
            mark_reducer(axes, x, number * STEP + STEP - 0.22)
    middle = x + 0.3 + WIDE / 2 + (len(steps[0][0]) - 1) * (WIDE + MARGIN) / 2
    write(axes, middle, top + 0.3, title, weight='bold')
    write(axes, middle, BELOW, below)


def draw_models(axes, x):
    """Two plain layers, one of two branches, and what ``fuse`` makes of it."""
    plain, parallel = build(), build(branches=BRANCHES)
    of_two, of_one = millions(plain.layers), millions(parallel.layers[0])
    fused = parallel.fuse().layers[0]
    heads, channels = ARCH['num_heads'], ARCH['feedforward_channels']
    attention = f'LN, MHSA\n{heads} heads'
    ffn = f'LN, FFN\n{channels} channels'
    steps = [((attention,), BLUE), ((ffn,), YELLOW)]
    draw_layers(axes, x, 'two plain layers', 2 * steps, of_two)
    side_by_side = [(BRANCHES * labels, colour) for labels, colour in steps]
    draw_layers(axes, x + 3.1, 'branches=2: one layer', side_by_side, of_one)
    attention = f'LN, MHSA\n{fused.attn.num_heads} heads'
    ffn = f'LN, FFN\n{fused.ffn.feedforward_channels} channels'
    steps = [((attention,), BLUE), ((ffn,), YELLOW)]
    draw_layers(axes, x + 7.75, 'fuse()', steps, millions(fused))


def stem_steps(stem):
    """The convolutions of a stem from first to last, as words."""
    from torch import nn

    found = [m for m in stem.modules() if isinstance(m, nn.Conv2d)]
    after = [*(len(found) - 1) * ['\nnorm, GELU'], '\nnorm']
    return [
        f'{conv.kernel_size[0]} x {conv.kernel_size[1]} conv., '
        f'stride {conv.stride[0]}' + (after[row] if len(found) > 1 else '')
        for row, conv in enumerate(found)
    ]


def draw_stem(axes, left, name, stem):
    """A stem from the image at the bottom up to the tokens."""
    middle, right = left + STEM_WIDE / 2, left + STEM_WIDE
    bottom = -0.4
    for row, words in enumerate(stem_steps(stem)):
        centre = row * STEM_STEP + 0.3
        arrow(axes, middle, bottom, centre - HIGH / 2)
        boxed(axes, left, right, centre, words, SKY)
        bottom = centre + HIGH / 2
    arrow(axes, middle, bottom, TOKENS - 0.05)
    write(axes, middle, BELOW, f'{name}\n{millions(stem)}')


def draw_tokens(axes, left, right, num_patches):
    """The sequence that the layers get, above the stems."""
    from matplotlib.patches import Rectangle

    pitch = (right - left) / 12
    colours = [ORANGE, PURPLE, *10 * [SKY]]
    for number, colour in enumerate(colours):
        place = (left + number * pitch, TOKENS)
        axes.add_patch(
            Rectangle(place, 0.8 * pitch, 0.8 * pitch, color=colour)
        )
    above = TOKENS + pitch
    style = dict(va='bottom', rotation=45)
    axes.text(left, above, 'CLS', color=ORANGE, **style)
    axes.text(left + pitch, above, 'distillation', color=PURPLE, **style)
    write(axes, left + 7 * pitch, above + 0.1, f'{num_patches} patches', SKY)


def draw_stems(axes, left):
    """The two stems side by side, and the tokens that either makes."""
    right = left + 2 * STEM_WIDE + MARGIN
    linear, hmlp = build().patch_embed, build(stem=HMLP).patch_embed
    draw_stem(axes, left, 'linear stem', linear)
    draw_stem(axes, right - STEM_WIDE, 'hMLP stem', hmlp)
    rows, columns = hmlp.init_out_size
    draw_tokens(axes, left, right, rows * columns)


def draw():
    """The figure."""
    import matplotlib.pyplot as plt

    plt.rcParams['font.size'] = 9
    figure, axes = plt.subplots(figsize=(11, 4.9), layout='constrained')
    draw_stems(axes, -6.3)
    draw_models(axes, 0)
    axes.set(xlim=(-6.4, 9.9), ylim=(-1, 6.5), aspect='equal')
    axes.axis('off')
    return figure


def main():
    out = ROOT / 'docs/pictures/blocks.png'
    write_picture(draw, __doc__.partition('\n')[0], out, dpi=150)


if __name__ == '__main__':
    cli.run(main)
