# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Draw docs/pictures/{cait,resmlp,patchconvnet}.png: layers of these models.

``python tools/dev/draw_families.py`` counts every number on the pictures in
the models themselves.
"""

from pathlib import Path

from mmclca import cli
from mmclca.cli.diagram import (
    BLUE,
    GREEN,
    HIGH,
    MARGIN,
    PURPLE,
    SKY,
    YELLOW,
    arrow,
    boxed,
    draw_residual,
    line,
    mark_reducer,
    write,
)

ROOT = Path(__file__).resolve().parents[2]
WIDE = 2.2  # of the boxes
BELOW = -0.85  # the words below the columns


def build(name):
    """The backbone of a piece, on the meta device."""
    import torch
    from mmengine.config import Config

    from mmclca.registry import MODELS

    config = Config.fromfile(ROOT / f'configs/_base_/models/{name}.py')
    with torch.device('meta'):
        return MODELS.build(config.model.backbone)


def millions(module):
    """The parameters of a module, as on the picture."""
    count = sum(p.numel() for p in module.parameters())
    return f'{count / 1e6:.2f} M parameters'


def draw_layer(axes, x, steps, title, below):
    """A stream upwards through residual steps; what it is, what it has.

    Returns:
        float: Height of the first sum.
    """
    tops, y = [], 0.0
    for boxes in steps:
        tops.append(draw_residual(axes, x, y, [boxes], WIDE))
        y = tops[-1] + 0.45
    line(axes, (x, x), (-0.4, y - 0.2))
    arrow(axes, x, y - 0.2, y + 0.15)
    middle = x + 0.3 + WIDE / 2
    write(axes, middle, y + 0.35, title, weight='bold')
    write(axes, middle, BELOW, below)
    return tops[0]


def draw_entering(axes, x, y, text):
    """Patches that come into the first box of the stream at ``x``."""
    end = x + 0.3 + WIDE
    style = dict(arrowstyle='-|>', color=SKY, lw=1.4, shrinkA=0)
    axes.annotate('', (end, y), (end + 0.5, y), arrowprops=style)
    axes.text(end + 0.55, y, text, va='center', color=SKY)


def ffn_of(layer, norm='LN'):
    """The words of a layer's FFN."""
    return f'{norm}, FFN\n{layer.ffn.feedforward_channels} channels, scale'


def draw_cait(axes):
    """A patch layer and a class layer; the limits of the picture."""
    backbone = build('cait-xxs24-p16')
    layer, last = backbone.layers[0], backbone.class_layers[0]
    heads, patches = layer.attn.num_heads, backbone.pos_embed.size(1)
    attention = [
        (f'LN, scores\n{heads} heads', BLUE),
        ('mix heads, softmax,\nmix heads', PURPLE),
        ('weighted values, scale', BLUE),
    ]
    steps = attention, [(ffn_of(layer), YELLOW)]
    title = f'patch layer, {len(backbone.layers)} times'
    below = f'{patches} patches in\n{millions(layer)}'
    mark_reducer(axes, 0, draw_layer(axes, 0, steps, title, below) + 0.25)
    attention = [(f'LN, class attention\n{heads} heads, scale', BLUE)]
    steps = attention, [(ffn_of(last), YELLOW)]
    title = f'class layer, {len(backbone.class_layers)} times'
    draw_layer(axes, 4.6, steps, title, f'CLS in\n{millions(last)}')
    draw_entering(axes, 4.6, MARGIN + HIGH / 2, f'CLS, and {patches} patches')
    return (-1, 9.7), 6.1


def draw_resmlp(axes):
    """What is mixed, and a layer; the limits of the picture."""
    backbone = build('resmlp-s12-p16')
    layer = backbone.layers[0]
    patches, channels = layer.mix.in_features, backbone.embed_dims
    draw_matrix(axes, -5, patches, channels)
    affine = 'affine'
    steps = (
        [
            (affine, GREEN),
            (f'linear across patches\n{patches} to {patches}', BLUE),
            ('scale', GREEN),
        ],
        [
            (affine, GREEN),
            (
                'linear, GELU, linear\n'
                f'{layer.ffn.feedforward_channels} channels',
                YELLOW,
            ),
            ('scale', GREEN),
        ],
    )
    title = f'layer, {len(backbone.layers)} times'
    draw_layer(axes, 0, steps, title, f'{millions(layer)}')
    return (-5.6, 3), 7.1


def draw_matrix(axes, left, patches, channels):
    """The tokens: a row a patch, a column a channel."""
    from matplotlib.patches import Rectangle

    rows, columns, side = 9, 12, 0.3
    for row in range(rows):
        for column in range(columns):
            colour = SKY
            if column == 3:
                colour = BLUE
            elif row == 5:
                colour = YELLOW
            place = left + column * side, 1.6 + row * side
            square = Rectangle(place, 0.8 * side, 0.8 * side, color=colour)
            axes.add_patch(square)
    middle, top = left + columns * side / 2, 1.6 + rows * side
    write(axes, middle, 1.3, f'{channels} channels')
    write(
        axes,
        left - 0.25,
        1.6 + rows * side / 2,
        f'{patches} patches',
        rotation=90,
    )
    write(axes, middle, top + 0.5, 'one map of patches for all channels', BLUE)
    write(
        axes,
        middle,
        top + 0.2,
        'one MLP of channels for all patches',
        '#B87F00',
    )


def draw_patchconvnet(axes):
    """Stem, a layer of the column and the pooling; the limits."""
    from torch import nn

    backbone = build('patchconvnet-s60')
    layer, pool = backbone.layers[0], backbone.pool
    stem = backbone.patch_embed
    convs = [m for m in stem.modules() if isinstance(m, nn.Conv2d)]
    bottom = -0.4
    for row, conv in enumerate(convs):
        centre = 0.5 + row * 0.95
        arrow(axes, -3.6, bottom, centre - HIGH / 2)
        words = f'3 x 3 conv., stride 2\n{conv.out_channels} channels'
        words += ', GELU' * (row + 1 < len(convs))
        boxed(axes, -4.8, -2.4, centre, words, SKY)
        bottom = centre + HIGH / 2
    arrow(axes, -3.6, bottom, bottom + 0.5)
    write(axes, -3.6, bottom + 0.75, '14 x 14 patches', SKY)
    write(axes, -3.6, BELOW, f'stem\n{millions(stem)}')
    squeezed = layer.se.conv1.conv.out_channels
    boxes = [
        ('LN, 1 x 1 conv., GELU', BLUE),
        ('3 x 3 depth-wise conv.,\nGELU', PURPLE),
        (f'squeeze-excitation\nby {squeezed} channels', GREEN),
        ('1 x 1 conv., scale', BLUE),
    ]
    title = f'layer, {len(backbone.layers)} times'
    draw_layer(axes, 0, [boxes], title, f'patches in\n{millions(layer)}')
    heads = pool.layer.attn.num_heads
    plural = '1 head' if heads == 1 else f'{heads} heads'
    boxes = [(f'LN, class attention\n{plural}, scale', BLUE)]
    steps = boxes, [(ffn_of(pool.layer), YELLOW)]
    draw_layer(
        axes,
        4.4,
        steps,
        'attention pooling',
        f'CLS in, or a query a class\n{millions(pool)}',
    )
    draw_entering(axes, 4.4, MARGIN + HIGH / 2, 'CLS, and patches')
    return (-5, 9.4), 5.1


DRAW = dict(cait=draw_cait, resmlp=draw_resmlp, patchconvnet=draw_patchconvnet)


def draw(name):
    """One of the figures."""
    import matplotlib.pyplot as plt

    plt.rcParams['font.size'] = 9
    figure, axes = plt.subplots(layout='constrained')
    xlim, top = DRAW[name](axes)
    axes.set(xlim=xlim, ylim=(-1.3, top), aspect='equal')
    axes.axis('off')
    figure.set_size_inches(0.72 * (xlim[1] - xlim[0]), 0.72 * (top + 1.3))
    return figure


def main():
    parser = cli.Parser(description=__doc__.partition('\n')[0])
    parser.add_argument('--out', type=Path, default=ROOT / 'docs/pictures')
    folder = parser.parse_args().out
    for name in DRAW:
        path = folder / f'{name}.png'
        draw(name).savefig(path, dpi=150, bbox_inches='tight')


if __name__ == '__main__':
    cli.run(main)
