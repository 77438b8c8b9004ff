# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Drawings: layers in ViT, CaiT, ResMLP and PatchConvNet.

Channels, heads and parameters are read from the models.
"""

from diagram import (
    BLUE,
    GREEN,
    HIGH,
    MARGIN,
    ORANGE,
    PURPLE,
    SKY,
    YELLOW,
    arrow,
    box,
    canvas,
    draw_residual,
    line,
    mark_reducer,
    squares,
    write,
)

VIT = dict(
    type='mmclca.TokenReductionViT',
    arch=dict(
        embed_dims=384, num_layers=2, num_heads=6, feedforward_channels=1536
    ),  # two layers of ViT-S
    img_size=224,
    patch_size=16,
)
HMLP = dict(type='mmclca.HMLPStem', norm_cfg=dict(type='BN'))
BELOW = -0.8  # height of the text below the columns


def build(config, **options):
    """Build a backbone from a config or a file in configs/_base_/models."""
    import torch
    from mmengine.config import Config

    from mmclca.registry import MODELS

    if isinstance(config, str):
        file = f'configs/_base_/models/{config}.py'
        config = Config.fromfile(file).model.backbone
    with torch.device('meta'):
        return MODELS.build(dict(config, **options))


def millions(module):
    """Describe the parameter count."""
    count = sum(p.numel() for p in module.parameters())
    return f'{count / 1e6:.2f} M parameters'


def draw_layer(axes, x, steps, title, below, wide=2.2):
    """Draw a stream upwards through residual steps, with texts above and
    below; return the height per sum."""
    tops, y = [], 0.0
    for branches in steps:
        tops.append(draw_residual(axes, x, y, branches, wide))
        y = tops[-1] + 0.45
    line(axes, (x, x), (-0.4, y - 0.2))
    arrow(axes, (x, y - 0.2), (x, y + 0.15))
    middle = x + 0.3 + wide / 2
    middle += (len(steps[0]) - 1) * (wide + MARGIN) / 2
    write(axes, middle, y + 0.35, title, weight='bold')
    write(axes, middle, BELOW, below)
    return tops


def draw_stem(axes, left, right, texts, below, top):
    """Draw convolutions from the image at the bottom up to a height."""
    middle, bottom = (left + right) / 2, -0.4
    for row, text in enumerate(texts):
        center = 0.3 + row * 0.95
        arrow(axes, (middle, bottom), (middle, center - HIGH / 2))
        box(axes, left, right, center, text, SKY)
        bottom = center + HIGH / 2
    arrow(axes, (middle, bottom), (middle, top))
    write(axes, middle, BELOW, below)


def convolutions(stem):
    """Return all convolutions, first to last."""
    from torch import nn

    return [m for m in stem.modules() if isinstance(m, nn.Conv2d)]


def stem_texts(stem):
    """Describe the convolutions in a ViT stem."""
    found = convolutions(stem)
    after = [*(len(found) - 1) * ['\nnorm, GELU'], '\nnorm']
    return [
        f'{conv.kernel_size[0]} x {conv.kernel_size[1]} conv., '
        f'stride {conv.stride[0]}' + (after[row] if len(found) > 1 else '')
        for row, conv in enumerate(found)
    ]


def draw_sequence(axes, left, right, y, num_patches):
    """Draw the input tokens."""
    pitch = (right - left) / 12
    corners = [(left + i * pitch, y) for i in range(12)]
    squares(axes, corners, 0.8 * pitch, [ORANGE, PURPLE, *10 * [SKY]])
    y += pitch
    style = dict(ha='left', va='bottom', rotation=45)
    write(axes, left, y, 'CLS', ORANGE, **style)
    write(axes, left + pitch, y, 'distillation', PURPLE, **style)
    write(axes, left + 7 * pitch, y + 0.1, f'{num_patches} patches', SKY)


def vit_steps(attention, ffn, branches=1):
    """Return the residual steps in a ViT layer with parallel branches."""
    heads, channels = attention.num_heads, ffn.feedforward_channels
    texts = (
        (f'LN, MHSA\n{heads} heads', BLUE),
        (f'LN, FFN\n{channels} channels', YELLOW),
    )
    return [branches * [[text]] for text in texts]


def draw_vit(axes, x, steps, title, below):
    """Draw ViT layers with their reducers, which follow the attention."""
    tops = draw_layer(axes, x, steps, title, below, wide=1.6)
    for top in tops[::2]:
        mark_reducer(axes, x, top + 0.22)


def blocks():
    """Draw two stems, the tokens, plain and parallel layers."""
    figure, axes = canvas(11, 4.9, (-6.4, 9.9), (-1.1, 6.5))
    plain, parallel = build(VIT), build(VIT, branches=2)
    hmlp = build(VIT, stem=HMLP).patch_embed
    for left, name, stem in (
        (-6.3, 'linear', plain.patch_embed),
        (-3.7, 'hMLP', hmlp),
    ):
        below = f'{name} stem\n{millions(stem)}'
        draw_stem(axes, left, left + 2.4, stem_texts(stem), below, 3.15)
    rows, columns = hmlp.init_out_size
    draw_sequence(axes, -6.3, -1.3, 3.2, rows * columns)
    layer = plain.layers[0]
    steps = vit_steps(layer.attn, layer.ffn)
    draw_vit(axes, 0, 2 * steps, 'two plain layers', millions(plain.layers))
    of_one = millions(parallel.layers[0])
    steps = vit_steps(layer.attn, layer.ffn, branches=2)
    draw_vit(axes, 3.1, steps, 'branches=2: one layer', of_one)
    fused = parallel.fuse().layers[0]
    steps = vit_steps(fused.attn, fused.ffn)
    draw_vit(axes, 7.75, steps, 'after fuse()', millions(fused))
    return figure


def ffn_text(layer):
    """Describe the FFN with LayerScale."""
    return f'LN, FFN\n{layer.ffn.feedforward_channels} channels, scale'


def draw_patches_in(axes, x, text):
    """Draw patches entering the first box at x."""
    end, y = x + 2.5, MARGIN + HIGH / 2
    arrow(axes, (end + 0.5, y), (end, y), SKY)
    write(axes, end + 0.55, y, text, SKY, ha='left')


def cait():
    """Draw CaiT: a patch layer and a class layer."""
    figure, axes = canvas(7.2, 4.4, (-1, 9.3), (-1.1, 5.2))
    backbone = build('cait-xxs24-p16')
    layer, last = backbone.layers[0], backbone.class_layers[0]
    heads, patches = layer.attn.num_heads, backbone.pos_embed.size(1)
    attention = [
        (f'LN, attention scores\n{heads} heads', BLUE),
        ('mix heads, softmax,\nmix heads', PURPLE),
        ('weighted values, scale', BLUE),
    ]
    steps = [attention], [[(ffn_text(layer), YELLOW)]]
    title = f'patch layer, {len(backbone.layers)} times'
    below = f'input: {patches} patches\n{millions(layer)}'
    tops = draw_layer(axes, 0, steps, title, below)
    mark_reducer(axes, 0, tops[0] + 0.25)
    attention = [(f'LN, class attention\n{heads} heads, scale', BLUE)]
    steps = [attention], [[(ffn_text(last), YELLOW)]]
    title = f'class layer, {len(backbone.class_layers)} times'
    draw_layer(axes, 4.6, steps, title, f'input: CLS\n{millions(last)}')
    draw_patches_in(axes, 4.6, f'CLS, {patches} patches')
    return figure


def draw_matrix(axes, left, patches, channels):
    """Draw the tokens as a matrix: one row per patch, one column per
    channel."""
    rows, columns, side = 9, 12, 0.3
    cells = [(row, column) for row in range(rows) for column in range(columns)]
    corners = [(left + c * side, 1.6 + r * side) for r, c in cells]
    colors = [BLUE if c == 3 else YELLOW if r == 5 else SKY for r, c in cells]
    squares(axes, corners, 0.8 * side, colors)
    middle, top = left + columns * side / 2, 1.6 + rows * side
    write(axes, middle, 1.3, f'{channels} channels')
    y = 1.6 + rows * side / 2
    write(axes, left - 0.25, y, f'{patches} patches', rotation=90)
    text = 'one linear layer across the patches,\nshared by all channels'
    write(axes, middle, top + 0.95, text, BLUE)
    text = 'one MLP across the channels,\nshared by all patches'
    write(axes, middle, top + 0.35, text, '#B87F00')


def resmlp():
    """Draw ResMLP: the tokens as a matrix, and a layer."""
    figure, axes = canvas(6, 5.4, (-5.6, 3), (-1.2, 6.5))
    backbone = build('resmlp-s12-p16')
    layer = backbone.layers[0]
    patches = layer.mix.in_features
    draw_matrix(axes, -5, patches, backbone.embed_dims)
    across = f'linear across patches\n{patches} to {patches}'
    channels = layer.ffn.feedforward_channels
    mlp = f'linear, GELU, linear\n{channels} channels'
    steps = [
        [[('affine', GREEN), inner, ('scale', GREEN)]]
        for inner in ((across, BLUE), (mlp, YELLOW))
    ]
    title = f'layer, {len(backbone.layers)} times'
    draw_layer(axes, 0, steps, title, millions(layer))
    return figure


def patchconvnet():
    """Draw PatchConvNet: stem, layer and attention pooling."""
    figure, axes = canvas(9.5, 3.9, (-5, 9.2), (-1.1, 4.7))
    backbone = build('patchconvnet-s60')
    layer, pool = backbone.layers[0], backbone.pool
    stem = backbone.patch_embed
    convs = convolutions(stem)
    texts = [
        f'3 x 3 conv., stride 2\n{conv.out_channels} channels'
        + ', GELU' * (conv is not convs[-1])
        for conv in convs
    ]
    draw_stem(axes, -4.8, -2.4, texts, f'stem\n{millions(stem)}', 4)
    write(axes, -3.6, 4.25, '14 x 14 patches', SKY)
    squeezed = layer.se.conv1.conv.out_channels
    boxes = [
        ('LN, 1 x 1 conv., GELU', BLUE),
        ('3 x 3 depth-wise\nconv., GELU', PURPLE),
        (f'squeeze-excitation,\n{squeezed} channels', GREEN),
        ('1 x 1 conv., scale', BLUE),
    ]
    title = f'layer, {len(backbone.layers)} times'
    below = f'input: patches\n{millions(layer)}'
    draw_layer(axes, 0, [[boxes]], title, below)
    heads = pool.layer.attn.num_heads
    plural = '1 head' if heads == 1 else f'{heads} heads'
    attention = [(f'LN, class attention\n{plural}, scale', BLUE)]
    steps = [attention], [[(ffn_text(pool.layer), YELLOW)]]
    below = f'input: CLS, or one query per class\n{millions(pool)}'
    draw_layer(axes, 4.4, steps, 'attention pooling', below)
    draw_patches_in(axes, 4.4, 'CLS, patches')
    return figure


PICTURES = dict(
    blocks=blocks, cait=cait, resmlp=resmlp, patchconvnet=patchconvnet
)
