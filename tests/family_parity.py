# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""What public code of the ViT family answers, and our models with its weights.

``data/vit_family.json`` holds cases of small models (distilled DeiT, DeiT
III, its hMLP stem, ResMLP, PatchConvNet, CaiT): settings, and in float64 what
came out. As in ``parity.py`` tensors are not stored, each is drawn from (seed,
key, shape).
"""

import json
from functools import partial
from pathlib import Path

import torch
from mmengine.runner import load_checkpoint
from parity import draw, images

from mmclca.checkpoints.renames import rename_to_classifier
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
    """The cases of one system, to parametrize a test with."""
    return [case for case in DATA['cases'] if case['system'] == system]


def weights(case):
    """The state dict of a case, by the keys of its release."""
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
    """The labels of a batch, (B,)."""
    return torch.arange(case['batch']) % case['num_classes']


def vit(case, **settings):
    """Config of the backbone of a case."""
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


def deit3(case, **settings):
    """Config of the backbone of a DeiT III case."""
    return vit(
        case,
        with_cls_pos=False,
        branches=case['branches'],
        stem=STEMS[case['stem']],
        layer_scale_init_value=1.0 if case['with_layer_scale'] else 0.0,
        **settings,
    )


def cait(case, **settings):
    """Config of the backbone of a CaiT case."""
    sizes = vit(case)
    return dict(
        type='mmclca.CaiT',
        arch=sizes['arch'],
        img_size=case['img_size'],
        patch_size=case['patch_size'],
        num_class_layers=case['depth_token_only'],
        class_mlp_ratio=case['mlp_ratio_clstk'],
        qkv_bias=case['qkv_bias'],
        norm_cfg=sizes['norm_cfg'],
        **settings,
    )


def resmlp(case, **settings):
    """Config of the backbone of a ResMLP case."""
    return dict(
        type='mmclca.ResMLP',
        arch=dict(embed_dims=case['embed_dim'], num_layers=case['depth']),
        img_size=case['img_size'],
        patch_size=case['patch_size'],
        **settings,
    )


def patch_convnet(case, **settings):
    """Config of the backbone of a PatchConvNet case."""
    arch = dict(embed_dims=case['embed_dim'], num_layers=case['depth'])
    return dict(
        type='mmclca.PatchConvNet',
        arch=arch,
        img_size=case['img_size'],
        multiclass=case['num_classes'] if case['multiclass'] else False,
        num_heads=case['num_heads'],
        class_mlp_ratio=case['mlp_ratio_clstk'],
        qkv_bias=case['qkv_bias'],
        norm_cfg=dict(type='LN', eps=case['eps']),
        **settings,
    )


def classifier(
    case, backbone, head, folder, kind='mmclca.TokenReductionClassifier'
):
    """A float64 classifier with the weights, loaded as people load them."""
    sizes = dict(in_channels=case['embed_dim'])
    model = MODELS.build(
        dict(
            type=kind,
            backbone=backbone,
            head=dict(num_classes=case['num_classes'], type=head, **sizes),
        )
    )
    path = str(folder / 'release.pth')
    torch.save({'model': weights(case)}, path)
    load_checkpoint(model.double(), path)
    return model


def close(ours, theirs):
    """Whether a tensor, or numbers, are those of the public code."""
    ours, theirs = (torch.as_tensor(x).double() for x in (ours, theirs))
    bound = 1e-6 * max(1.0, theirs.abs().max().item())
    return (ours - theirs).abs().max().item() <= bound


def sums(x):
    """The three sums of a tensor by which cases describe it."""
    x = x.detach().flatten()
    ramp = torch.arange(1, len(x) + 1).to(x) / len(x)
    return [x.sum().item(), (x * x).sum().item(), (x * ramp).sum().item()]


@torch.no_grad()
def check_trace(case, model):
    """Compare what leaves the embedding, every layer and the last norm.

    The model is in eval mode; its backbone has other outputs afterwards.
    """
    backbone, x = model.backbone, images(case)
    backbone.out_type, backbone.final_norm = 'raw', False
    backbone.out_indices = range(case['depth'])
    outs = backbone(x)
    ours = {f'blocks.{i}': out for i, out in enumerate(outs)}
    ours['patch_embed'] = backbone.patch_embed(x)[0]
    ours['norm'] = backbone.ln1(outs[-1])
    for name, *theirs in case['expect']['trace']:
        assert close(sums(ours[name]), theirs), name


@torch.no_grad()
def check_outputs(case, model, parts):
    """Compare what leaves modules, by the names of the public code."""
    ours = {}

    def keep(name, _module, _given, out):
        ours[name] = sums(out[0] if isinstance(out, tuple) else out)

    for name, module in parts.items():
        module.register_forward_hook(partial(keep, name))
    model(images(case))
    for name, *theirs in case['expect']['trace']:
        assert close(ours[name], theirs), name


def check_gradients(case, module, prefix=''):
    """Compare the norms of all gradients, of parameters of any module.

    ``prefix`` is what the names of a classifier begin with, and those of the
    module do not.
    """
    norms = case['expect']['grad_norm']
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
