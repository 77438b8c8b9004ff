# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Draw docs/pictures/data_flow.png: how tokens go through a CLCA ViT.

``python tools/dev/draw_data_flow.py`` counts every number on the picture in
the model itself.
"""

from math import ceil, sqrt
from pathlib import Path

from mmclca import cli
from mmclca.cli.diagram import (
    GREEN,
    ORANGE,
    SKY,
    arrow,
    box,
    write,
    write_picture,
)

ROOT = Path(__file__).resolve().parents[2]
CONFIG = ROOT / 'configs/_base_/models/clca-evit_vit-base-p16.py'
KEEP_RATE, SIZE = 0.25, 448
CLCA = dict(method='EViT', keep_rate=KEEP_RATE, cache=True, cla=True)
CLS, PATCH, CACHED = ORANGE, SKY, GREEN
# a layer is a column of width 1, around height 0
CACHE_ROW, HEAD_ROW = -1.25, 1.4
STORED, RECOVERED = 0.62, 0.4  # to the right of the layer, in this order
WIDTH = 0.84  # of the longest sequence
STEPS = (  # of the CLA head
    'BatchNorm',
    'depth-wise conv.',
    'BatchNorm',
    'GELU',
    'point-wise conv.',
    'classes',
)


def build(**reduction):
    """The classifier with some reduction, on the meta device."""
    import torch
    from mmengine.config import Config

    from mmclca.models import with_reduction
    from mmclca.registry import MODELS

    config = with_reduction(Config.fromfile(CONFIG).model, **reduction)
    config.backbone.img_size = SIZE
    with torch.device('meta'):
        return MODELS.build(config)


def draw_tokens(axes, column, num_tokens, num_cached, pitch):
    """A square of dots, one a token: CLS first, cached ones last."""
    from matplotlib.collections import PatchCollection
    from matplotlib.patches import Rectangle

    side = ceil(sqrt(num_tokens))
    left, top = column - side / 2 * pitch, side / 2 * pitch
    dots = [
        Rectangle(
            (left + i % side * pitch, top - (i // side + 1) * pitch),
            0.8 * pitch,
            0.8 * pitch,
        )
        for i in range(num_tokens)
    ]
    patches = num_tokens - 1 - num_cached
    colours = [CLS, *patches * [PATCH], *num_cached * [CACHED]]
    axes.add_collection(
        PatchCollection(dots, facecolors=colours, linewidths=0)
    )


def put_back(cost):
    """How many tokens come back from the cache after each layer but one."""
    pairs = zip(cost.tokens, cost.attended[1:], strict=False)
    return [attended - left for left, attended in pairs]


def draw_layers(axes, cost, backbone):
    """One column a layer: the tokens that leave it, and how many they are."""
    pitch = WIDTH / ceil(sqrt(max(cost.tokens)))
    cached = backbone.cache.num_tokens
    for layer, num_tokens in enumerate(cost.tokens):
        cached += put_back(cost)[layer - 1] if layer else 0
        if layer in backbone.reduce_at:
            cached = 0  # which of them are left depends on it
        draw_tokens(axes, layer, num_tokens, cached, pitch)
        write(axes, layer, 0.55, num_tokens)
        write(axes, layer, -0.53, f'layer {layer}')
    for layer in backbone.reduce_at:
        write(axes, layer, -0.74, 'reduces', weight='bold', size=8)


def draw_cache(axes, cost, cache):
    """What each layer leaves in the cache, and where it comes back."""
    entry = cache.num_tokens + cache.with_gap
    first = 0
    for layer, number in enumerate(put_back(cost)):
        if not number:
            continue
        after = first + number // entry
        left, right = first + STORED - 0.15, after - 1 + STORED + 0.15
        box(axes, left, right, CACHE_ROW, 0.28, CACHED)
        for stored in range(first, after):
            x = stored + STORED
            arrow(axes, x, -0.62, CACHE_ROW + 0.18, CACHED)
            write(axes, x, CACHE_ROW, entry, CACHED)
        draw_recovery(axes, right, layer + RECOVERED, number)
        first = after


def draw_recovery(axes, start, end, number):
    """The way back from the cache."""
    style = dict(color=CACHED, lw=1.4)
    corner = ((start, end, end), (CACHE_ROW, CACHE_ROW, -0.2))
    axes.plot(*corner, **style)
    arrow(axes, end, -0.3, -0.04, CACHED)
    write(axes, end, 0.04, f'+{number}', CACHED, weight='bold')


def draw_head(axes, layers):
    """The CLA head, and the CLS tokens that it reads."""
    left, right = layers[0] - 0.35, layers[-1] + 0.35
    box(axes, left, right, HEAD_ROW, 0.45, CLS)
    steps = '  \N{RIGHTWARDS ARROW}  '.join(STEPS)
    write(axes, (left + right) / 2, HEAD_ROW, f'CLA head:  {steps}')
    for layer in layers:
        arrow(axes, layer, 0.68, HEAD_ROW - 0.25, CLS)
        write(axes, layer + 0.2, 0.9, 'CLS', CLS)


def add_words(axes, cost, plain):
    """Title, legend, and what the cache does."""
    from matplotlib.patches import Patch

    gmacs, all_tokens = cost.flops / 1e9, plain.flops / 1e9
    axes.set_title(
        f'CLCA ViT-B/16 with EViT, keep rate {KEEP_RATE:g}, {SIZE} px: '
        f'{gmacs:.1f} GMACs ({all_tokens:.1f} for the ViT with all tokens)'
    )
    axes.text(
        STORED - 0.15,
        CACHE_ROW - 0.45,
        'cache (CLC): the average of the tokens and the CLR token of each '
        'layer,\nput back after each reduction and before the last layer',
        color=CACHED,
        va='center',
    )
    handles = [
        Patch(color=CLS, label='CLS'),
        Patch(color=PATCH, label='patches; later: kept and fused'),
        Patch(color=CACHED, label='CLR token; put back by the cache'),
    ]
    axes.legend(handles=handles, loc='lower center', ncols=3, frameon=False)


def draw():
    """The figure."""
    import matplotlib.pyplot as plt

    from mmclca.evaluation.cost import count

    model = build(**CLCA)
    cost, backbone = count(model), model.backbone
    plt.rcParams['font.size'] = 9
    figure, axes = plt.subplots(figsize=(10, 4.4), layout='constrained')
    draw_layers(axes, cost, backbone)
    draw_cache(axes, cost, backbone.cache)
    draw_head(axes, sorted(backbone.out_indices))
    add_words(axes, cost, count(build()))
    axes.set(xlim=(-0.5, 11.9), ylim=(-2.3, 1.7), aspect='equal')
    axes.axis('off')
    return figure


def main():
    out = ROOT / 'docs/pictures/data_flow.png'
    write_picture(draw, __doc__.partition('\n')[0], out, dpi=180)


if __name__ == '__main__':
    cli.run(main)
