# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Drawings: steps in ``fit``, tokens in a CLCA ViT.

Tokens and GMACs are counted on the model.
"""

from math import ceil, sqrt

from diagram import (
    BLUE,
    GREEN,
    ORANGE,
    PURPLE,
    SKY,
    arrow,
    box,
    canvas,
    squares,
    write,
)

CONFIG = 'configs/_base_/models/clca-evit_vit-base-p16.py'
KEEP_RATE, SIZE = 0.25, 448
CLCA = dict(method='EViT', keep_rate=KEEP_RATE, cache=True, cla=True)
# a layer is a column with width 1, centered at height 0
CACHE_ROW, HEAD_ROW = -1.25, 1.4
STORED, RETURNED = 0.62, 0.4  # positions of arrows, to the right of a layer
WIDTH = 0.84  # of the square with the longest sequence
HEAD = '  \N{RIGHTWARDS ARROW}  '.join(
    (
        'CLA head:  BatchNorm',
        'depth-wise conv.',
        'BatchNorm',
        'GELU',
        'point-wise conv.',
        'classes',
    )
)
LEGEND = {
    'CLS': ORANGE,
    'patches; later: kept and fused': SKY,
    'CLR token; tokens returned by the cache': GREEN,
}
CACHE = (
    'cache (CLC): the average token and the CLR token of each layer,\n'
    'returned after each reduction and before the last layer'
)


def build(**reduction):
    """Build the classifier with a reduction, on the meta device."""
    import torch
    from mmengine.config import Config

    from mmclca.models import with_reduction
    from mmclca.registry import MODELS

    config = with_reduction(Config.fromfile(CONFIG).model, **reduction)
    config.backbone.img_size = SIZE
    with torch.device('meta'):
        return MODELS.build(config)


def draw_tokens(axes, column, num_tokens, num_cached, pitch):
    """Draw one dot per token in a square: CLS first, cached tokens last."""
    side = ceil(sqrt(num_tokens))
    left, top = column - side / 2 * pitch, side / 2 * pitch
    corners = [
        (left + i % side * pitch, top - (i // side + 1) * pitch)
        for i in range(num_tokens)
    ]
    patches = num_tokens - 1 - num_cached
    colors = [ORANGE, *patches * [SKY], *num_cached * [GREEN]]
    squares(axes, corners, 0.8 * pitch, colors)


def returned(cost):
    """Count the tokens returned by the cache after each layer but one."""
    pairs = zip(cost.tokens, cost.attended[1:], strict=False)
    return [attended - left for left, attended in pairs]


def draw_layers(axes, cost, backbone):
    """Draw one column per layer: its output tokens and their number."""
    pitch = WIDTH / ceil(sqrt(max(cost.tokens)))
    cached = backbone.cache.num_tokens
    for layer, num_tokens in enumerate(cost.tokens):
        cached += returned(cost)[layer - 1] if layer else 0
        if layer in backbone.reduce_at:
            cached = 0  # the reducer may drop cached tokens
        draw_tokens(axes, layer, num_tokens, cached, pitch)
        write(axes, layer, 0.55, num_tokens)
        write(axes, layer, -0.53, f'layer {layer}')
    for layer in backbone.reduce_at:
        write(axes, layer, -0.74, 'reduces', weight='bold', size=8)


def draw_cache(axes, cost, cache):
    """Draw the tokens added to the cache by each layer, and their return."""
    entry = cache.num_tokens + cache.with_gap
    first = 0
    for layer, number in enumerate(returned(cost)):
        if not number:
            continue
        after = first + number // entry
        left, right = first + STORED - 0.15, after - 1 + STORED + 0.15
        box(axes, left, right, CACHE_ROW, color=GREEN, height=0.28)
        for x in (stored + STORED for stored in range(first, after)):
            arrow(axes, (x, -0.62), (x, CACHE_ROW + 0.18), GREEN)
            write(axes, x, CACHE_ROW, entry, GREEN)
        end = layer + RETURNED
        axes.plot((right, end), (CACHE_ROW,) * 2, color=GREEN, lw=1.4)
        arrow(axes, (end, CACHE_ROW), (end, -0.1), GREEN)
        write(axes, end, 0.04, f'+{number}', GREEN, weight='bold')
        first = after
    left = STORED - 0.15
    write(axes, left, CACHE_ROW - 0.45, CACHE, GREEN, ha='left')


def draw_head(axes, layers):
    """Draw the CLA head and its CLS tokens."""
    left, right = layers[0] - 0.35, layers[-1] + 0.35
    box(axes, left, right, HEAD_ROW, HEAD, ORANGE, 0.45)
    for layer in layers:
        arrow(axes, (layer, 0.68), (layer, HEAD_ROW - 0.25), ORANGE)
        write(axes, layer + 0.2, 0.9, 'CLS', ORANGE)


def data_flow():
    """Draw the tokens in a CLCA ViT after each layer."""
    from matplotlib.patches import Patch

    from mmclca.evaluation.cost import count

    model = build(**CLCA)
    cost, full = count(model), count(build())
    figure, axes = canvas(10, 3.75, (-0.5, 11.9), (-2.3, 1.75))
    draw_layers(axes, cost, model.backbone)
    draw_cache(axes, cost, model.backbone.cache)
    draw_head(axes, sorted(model.backbone.out_indices))
    axes.set_title(
        f'CLCA ViT-B/16 with EViT, keep rate {KEEP_RATE:g}, {SIZE} px: '
        f'{cost.flops / 1e9:.1f} GMACs (full ViT: {full.flops / 1e9:.1f})'
    )
    handles = [Patch(color=c, label=text) for text, c in LEGEND.items()]
    axes.legend(handles=handles, loc='lower center', ncols=3, frameon=False)
    return figure


FIT = (
    ('photos', 'one folder\nper class', SKY),
    ('pretrained ViT', 'halves its tokens\nin three of 12 layers', BLUE),
    ('features', 'CLS of 12 layers; mean\nand std of the first nine', PURPLE),
    ('classifier', 'weighted average of\ntwo ridge regressions', ORANGE),
)
OUTPUTS = (
    'accuracy, 95% interval,\nby cross-validation',
    'report: confused classes,\npossible label errors',
    'model folder for predict,\npage, add-class, export',
)
WIDE, APART = 2.55, 0.45  # box width and gap in the fit drawing


def draw_step(axes, number, title, text, color):
    """Draw a step as a box, with an arrow to the next one."""
    left = number * (WIDE + APART)
    box(axes, left, left + WIDE, 0, color=color, height=1.25)
    write(axes, left + WIDE / 2, 0.33, title, weight='bold', size=10)
    write(axes, left + WIDE / 2, -0.18, text, size=9)
    arrow(axes, (left + WIDE, 0), (left + WIDE + APART, 0))


def fit():
    """Draw the steps in fit, from the photos to three results."""
    steps = len(FIT)
    left = steps * (WIDE + APART)
    figure, axes = canvas(10, 1.95, (-0.1, left + 2.8), (-1.35, 1.35))
    for number, step in enumerate(FIT):
        draw_step(axes, number, *step)
    start = left - APART / 2
    axes.plot((start, start), (-0.9, 0.9), color='#333333', lw=1.4)
    for row, text in enumerate(OUTPUTS):
        middle = 0.9 - 0.9 * row
        arrow(axes, (start, middle), (left, middle))
        box(axes, left, left + 2.7, middle, text, GREEN, 0.72)
    return figure


PICTURES = dict(data_flow=data_flow, fit=fit)
