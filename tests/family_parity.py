# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Reference results of public ViT code, and our equal models.

``data/vit_family.json`` holds cases of small models (distilled DeiT, DeiT
III, its hMLP stem, ResMLP, PatchConvNet, CaiT): settings and float64 results.
As in ``parity.py``, tensors are generated from (seed, key, shape).
"""

import json
from pathlib import Path

import torch
from parity import draw

from mmclca.checkpoints.load import load
from mmclca.checkpoints.rename import rename_to_classifier
from mmclca.models import Reducible, TokenReductionViT
from mmclca.models.backbones import CaiT, PatchConvNet
from mmclca.registry import MODELS

DATA = json.loads(
    (Path(__file__).parent / 'data' / 'vit_family.json').read_text()
)
STEMS = dict(
    patch=None,
    hmlp_bn=dict(type='mmclca.HMLPStem', norm_cfg=dict(type='BN')),
    hmlp_ln=dict(type='mmclca.HMLPStem', norm_cfg=dict(type='LN2d', eps=1e-6)),
)


def cases(system):
    """Cases of one system."""
    return [case for case in DATA['cases'] if case['system'] == system]


def weights(case):
    """State dict with the names of a case's release."""
    shapes = DATA['shapes'][case['shapes']]
    drawn = {k: draw(case['seed'], k, tuple(s)) for k, s in shapes.items()}
    scale = case.get('layer_scale')
    if scale is not None:
        for key in (key for key in drawn if 'gamma' in key):
            drawn[key] = torch.full_like(drawn[key], scale)
    factor = case.get('gamma_factor')
    if factor is not None:
        for key in (key for key in drawn if 'gamma' in key):
            drawn[key] = drawn[key] * factor
    return drawn


def targets(case):
    """Batch labels, (B,)."""
    return torch.arange(case['batch']) % case['num_classes']


def vit(case, **settings):
    """Backbone config for a case."""
    dims = case['embed_dim']
    return dict(
        type='mmclca.TokenReductionViT',
        arch=dict(
            embed_dims=dims,
            num_layers=case['depth'],
            num_heads=case['num_heads'],
            feedforward_channels=int(dims * case['mlp_ratio']),
        ),
        img_size=case['img_size'],
        patch_size=16,
        norm_cfg=dict(type='LN', eps=case['eps']),
        **settings,
    )


def distilled(case):
    """Backbone config for a distilled DeiT."""
    return vit(case, dist_token=True)


def deit3(case):
    """Backbone config for a DeiT III."""
    return vit(
        case,
        with_cls_pos=False,
        branches=case['branches'],
        stem=STEMS[case['stem']],
        layer_scale_init_value=1.0 if case['with_layer_scale'] else 0.0,
    )


def cait(case):
    """Backbone config for a CaiT."""
    return dict(
        vit(case),
        type='mmclca.CaiT',
        patch_size=case['patch_size'],
        num_class_layers=case['depth_token_only'],
        class_mlp_ratio=case['mlp_ratio_clstk'],
        qkv_bias=case['qkv_bias'],
    )


def resmlp(case):
    """Backbone config for a ResMLP."""
    return dict(
        type='mmclca.ResMLP',
        arch=dict(embed_dims=case['embed_dim'], num_layers=case['depth']),
        img_size=case['img_size'],
        patch_size=case['patch_size'],
    )


def patch_convnet(case):
    """Backbone config for a PatchConvNet."""
    return dict(
        type='mmclca.PatchConvNet',
        arch=dict(embed_dims=case['embed_dim'], num_layers=case['depth']),
        img_size=case['img_size'],
        multiclass=case['num_classes'] if case['multiclass'] else False,
        num_heads=case['num_heads'],
        class_mlp_ratio=case['mlp_ratio_clstk'],
        qkv_bias=case['qkv_bias'],
        norm_cfg=dict(type='LN', eps=case['eps']),
    )


BACKBONES = dict(  # backbone and head by system
    deit_distilled=(distilled, 'mmclca.DistilledHead'),
    deit3=(deit3, 'VisionTransformerClsHead'),
    cait=(cait, 'LinearClsHead'),
    resmlp=(resmlp, 'LinearClsHead'),
    patchconvnet=(patch_convnet, 'LinearClsHead'),
)


def classifier(case, folder):
    """Our classifier of a case, float64, loaded from a file."""
    backbone, head = BACKBONES[case['system']]
    head = dict(type=head, in_channels=case['embed_dim'])
    if case.get('multiclass'):
        head['type'] = 'mmclca.PerClassHead'
    model = dict(type='ImageClassifier', backbone=backbone(case))
    model['head'] = dict(head, num_classes=case['num_classes'])
    model = MODELS.build(model)
    path = str(folder / 'release.pth')
    torch.save({'model': weights(case)}, path)
    load(model.double(), path, strict=False)
    return model


def sums(x):
    """Three sums that describe a tensor in the cases."""
    x = x.detach().flatten()
    ramp = torch.arange(1, len(x) + 1).to(x) / len(x)
    return [x.sum().item(), (x * x).sum().item(), (x * ramp).sum().item()]


@torch.no_grad()
def outputs(model, x):
    """Scores, and module outputs by their public names.

    Feature maps become tokens (B, N, C).
    """
    backbone, outs = model.backbone, {}

    def keep(name, out):
        out = out[0] if isinstance(out, tuple) else out
        outs[name] = out.flatten(2).mT if out.dim() == 4 else out

    for name, module in parts(backbone).items():
        module.register_forward_hook(
            lambda _, __, out, name=name: keep(name, out)
        )
    if isinstance(backbone, Reducible):  # does not call its layers
        run = backbone.run_layer

        def run_layer(layer, *arguments):
            tokens = run(layer, *arguments)
            keep(f'blocks.{[*backbone.layers].index(layer)}', tokens.features)
            return tokens

        backbone.run_layer = run_layer
    return model(x), outs


def parts(backbone):
    """Backbone modules by their public names."""
    found = {f'blocks.{i}': one for i, one in enumerate(backbone.layers)}
    found['patch_embed'] = backbone.patch_embed
    if isinstance(backbone, TokenReductionViT):
        found['norm'] = backbone.ln1
    elif isinstance(backbone, PatchConvNet):
        found['blocks_token_only.0'] = backbone.pool.layer
    elif isinstance(backbone, CaiT):
        layers = enumerate(backbone.class_layers)
        found |= {f'blocks_token_only.{i}': one for i, one in layers}
    return found


def check_gradients(module, norms, prefix=''):
    """Compare gradient norms of all parameters in a module.

    ``prefix`` is missing in the names of the module.
    """
    theirs = {  # renaming changes tensors, too
        key: torch.tensor(
            torch.nan if norm is None else norm, dtype=torch.float64
        )
        for key, norm in norms.items()
    }
    rename_to_classifier(theirs, '')
    params = dict(module.named_parameters())
    noise = 1e-12 * max(norm or 0.0 for norm in norms.values())
    for key, norm in theirs.items():
        name = key.replace('foreign_', '').removeprefix(prefix)
        grad = params.pop(name).grad
        if norm.isnan():
            assert grad is None, name
        else:
            bound = 1e-6 * norm + noise
            assert abs(grad.norm().item() - norm) <= bound, name
    assert not params
