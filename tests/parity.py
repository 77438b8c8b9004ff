# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Reference results of the CLCA authors' code, and our equal models.

``data/clca_authors.json`` holds cases of small models: settings, and in
float64 logits, token counts, training loss and gradient norms. Weights and
images are generated from (seed, key, shape).
"""

import json
import math
import zlib
from pathlib import Path

import torch

DATA = json.loads(
    (Path(__file__).parent / 'data' / 'clca_authors.json').read_text()
)
REDUCERS = dict(
    topk='mmclca.TopK',
    evit='mmclca.EViT',
    tome='mmclca.ToMe',
    ats='mmclca.ATS',
    dyvit='mmclca.DynamicViT',
    sit='mmclca.SiT',
    patchmerger='mmclca.PatchMerger',
    dpcknn='mmclca.DPCKNN',
)
CASES = DATA['cases']


def normal(seed, key, shape):
    """Standard normal numbers, float32."""
    code = zlib.crc32(f'{seed}:{key}'.encode())
    return torch.randn(shape, generator=torch.Generator().manual_seed(code))


def draw(seed, key, shape):
    """The authors' parameter or buffer ``key``, float32."""
    noise = normal(seed, key, shape)
    if key.endswith('num_batches_tracked'):
        return torch.tensor(0)
    if key.endswith('running_var'):
        return noise.abs() + 0.5
    if key.endswith('running_mean'):
        return noise * 0.2
    if key in ('cls_token', 'dist_token', 'clr', 'pos_embed'):
        return noise * 0.5
    if 'gamma' in key or key.endswith(('scale', '.alpha')):
        return 1 + 0.2 * noise
    if 'queries' in key:
        return noise * 0.3
    if len(shape) >= 2:
        return noise * _gain(key) / max(1, math.prod(shape[1:])) ** 0.5
    if key.endswith('weight'):
        return 1 + 0.2 * noise
    return noise * 0.1


def _gain(key):
    if 'qkv' in key:
        return 1.6
    return 0.9 if 'proj' in key or 'fc2' in key else 1.2


def weights(case):
    """State dict of a case, with the authors' names."""
    shapes = DATA['shapes'][case['shapes']]
    return {k: draw(case['seed'], k, tuple(s)) for k, s in shapes.items()}


def images(case):
    """Image batch for a case, (B, 3, H, W), float64."""
    size = case['img_size']
    generator = torch.Generator().manual_seed(1000 + size)
    shape = (case['batch'], 3, size, size)
    return torch.randn(shape, generator=generator).double()


def config(case):
    """Our model config for a case."""
    options = case['model']
    dims, depth = case['embed_dim'], case['depth']
    backbone = dict(
        type='mmclca.TokenReductionViT',
        arch=dict(
            embed_dims=dims,
            num_layers=depth,
            num_heads=case['num_heads'],
            feedforward_channels=4 * dims,
        ),
        img_size=case['img_size'],
        reduce_at=(3, 6, 9),
        qkv_bias=options.get('qkv_bias', True),
        pre_norm=options.get('pre_norm', False),
        norm_cfg=dict(
            type='LN', eps=1e-5 if 'norm_layer' in options else 1e-6
        ),
        layer_scale_init_value=options.get('init_values', 0.0),
    )
    if case['method'] in REDUCERS:
        backbone['reducer'] = dict(
            type=REDUCERS[case['method']], keep_rate=case['keep_rate']
        )
    if case['clc']:
        backbone['cache'] = dict(
            type='mmclca.CrossLayerCache',
            num_tokens=case['num_clr'],
            with_gap=case['gap'],
            recover_at_last=case['recover_at_last'],
            pool_cls=case['pool_cls'],
            pool_clr=case['pool_clr'],
        )
    head = dict(num_classes=case['num_classes'], in_channels=dims)
    if case['cla']:
        backbone.update(out_indices=(3, 6, 9, depth - 1), final_norm=False)
        head.update(type='mmclca.CLAHead', num_layers=4)
    else:
        head.update(type='VisionTransformerClsHead', init_cfg=None)
    return dict(
        type='mmclca.TokenReductionClassifier', backbone=backbone, head=head
    )


def close(ours, theirs):
    """Whether numbers equal the reference."""
    ours, theirs = (torch.as_tensor(x).double() for x in (ours, theirs))
    bound = 1e-6 * max(1.0, theirs.abs().max().item())
    return (ours - theirs).abs().max().item() <= bound
