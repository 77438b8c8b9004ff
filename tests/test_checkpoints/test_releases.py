# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Load each release layout; features and logits must equal timm."""

import argparse

import pytest
import torch
from piece_models import (
    ARCH,
    NAMES,
    PLAIN,
    differences,
    ours,
    piece,
    resized,
    theirs,
)

from mmclca.registry import MODELS


def other(weights):
    """Decoys of equal shapes."""
    return {name: torch.randn_like(value) for name, value in weights.items()}


def under(prefix, weights):
    return {f'{prefix}{name}': value for name, value in weights.items()}


def no_head(weights):
    return {k: v for k, v in weights.items() if not k.startswith('head.')}


def mlp(name):
    """Projection head of self-supervised methods."""
    return {
        f'{name}.0.weight': torch.randn(8, 16),
        f'{name}.1.running_mean': torch.randn(8),
        f'{name}.3.weight': torch.randn(4, 8),
    }


def mae(weights):
    """Pre-training file with decoder."""
    shapes = {
        'mask_token': (1, 1, 8),
        'decoder_pos_embed': (1, 197, 8),
        'decoder_embed.weight': (8, 16),
        'decoder_blocks.0.norm1.weight': (8,),
        'decoder_norm.weight': (8,),
        'decoder_pred.weight': (768, 8),
    }
    drawn = {name: torch.randn(shape) for name, shape in shapes.items()}
    return no_head(weights) | drawn


def dino(weights):
    head = {
        'head.mlp.0.weight': torch.randn(8, 16),
        'head.last_layer.weight_g': torch.randn(4, 1),
    }
    weights = no_head(weights)
    return dict(
        student=under(
            'module.', {**under('backbone.', other(weights)), **head}
        ),
        teacher={**under('backbone.', weights), **head},
        optimizer=dict(state={}, param_groups=[]),
        epoch=400,
        args=argparse.Namespace(arch='vit_base', patch_size=16),
        dino_loss=dict(center=torch.zeros(1, 4)),
    )


def moco(weights):
    encoder = {**no_head(weights), **mlp('head')}
    weights = {
        **under('base_encoder.', encoder),
        **under('momentum_encoder.', other(encoder)),
        **mlp('predictor'),
    }
    return dict(
        epoch=300,
        arch='vit_base',
        state_dict=under('module.', weights),
        optimizer=dict(state={}),
        scaler=dict(scale=1.0),
    )


def probed_moco(weights):
    weights = under('module.', weights)
    return dict(epoch=90, arch='vit_base', state_dict=weights, best_acc1=76.7)


CLIP = (  # names in timm and open_clip
    ('cls_token', 'class_embedding'),
    ('pos_embed', 'positional_embedding'),
    ('patch_embed.proj', 'conv1'),
    ('norm_pre', 'ln_pre'),
    ('blocks.', 'transformer.resblocks.'),
    ('norm1', 'ln_1'),
    ('norm2', 'ln_2'),
    ('attn.qkv.', 'attn.in_proj_'),
    ('attn.proj', 'attn.out_proj'),
    ('mlp.fc1', 'mlp.c_fc'),
    ('mlp.fc2', 'mlp.c_proj'),
    ('norm.', 'ln_post.'),
    ('head.weight', 'proj'),
)


def image_tower(weights):
    tower = {}
    for name, value in weights.items():
        for old, new in CLIP:
            name = name.replace(old, new)
        tower[name] = value
    tower['class_embedding'] = tower['class_embedding'][0, 0]
    tower['positional_embedding'] = tower['positional_embedding'][0]
    tower['proj'] = tower['proj'].t().contiguous()
    assert not tower.pop('head.bias').any()
    return tower


def open_clip(weights):
    tower = image_tower(weights)
    blocks = {k: v for k, v in tower.items() if 'resblocks' in k}
    return {
        'positional_embedding': torch.randn(77, 16),
        'text_projection': torch.randn(16, 5),
        'logit_scale': torch.tensor(4.6),
        **other(blocks),  # text tower
        **under('visual.', tower),
        'token_embedding.weight': torch.randn(30, 16),
        'ln_final.weight': torch.randn(16),
    }


def trained_open_clip(weights):
    weights = under('module.', open_clip(weights))
    return dict(epoch=32, name='b16', state_dict=weights)


def dinov2(weights):
    return dict(no_head(weights), mask_token=torch.randn(1, 16))


def dinov2_registers(weights):
    """With a CLS position; timm adds it to the token."""
    weights = dinov2(weights)
    row = torch.randn(1, 1, 16).double()
    weights['cls_token'] = weights['cls_token'] - row
    weights['pos_embed'] = torch.cat((row, weights['pos_embed']), dim=1)
    weights['register_tokens'] = weights.pop('reg_token')
    return weights


def token_reduction(weights):
    """File with clusters, unused by a plain model."""
    clusters = {f'cluster_layers.{i}.v': torch.randn(9, 16) for i in (0, 1)}
    return dict(
        model={**weights, **clusters},
        optimizer=dict(state={}),
        epoch=29,
        args=argparse.Namespace(model='sinkhorn_tiny', keep_rate=[0.5]),
        scaler={},
    )


def authors(weights):
    """File without CLC and CLA."""
    return dict(model=weights, ema_best=None, args=argparse.Namespace(clc=0))


LAYOUTS = {  # backbone, file, with a linear head?
    'timm': ('vit-base-p16', dict, True),
    'deit': ('deit-base-p16', lambda w: {'model': w}, True),
    'miil': ('miil-base-p16', lambda w: {'state_dict': w}, True),
    'mae': ('mae-base-p16', lambda w: {'model': no_head(w)}, False),
    'mae, decoder': ('mae-base-p16', lambda w: {'model': mae(w)}, False),
    'dino, backbone': ('dino-base-p16', no_head, False),
    'dino, full': ('dino-base-p16', dino, False),
    'moco v3': ('mocov3-base-p16', moco, False),
    'moco v3, probed': ('mocov3-base-p16', probed_moco, True),
    'open_clip': ('clip-base-p16', open_clip, True),
    'open_clip, trained': ('clip-base-p16', trained_open_clip, True),
    'open_clip, tower': ('clip-base-p16', image_tower, True),
    'dinov2': ('dinov2-base-p14', dinov2, False),
    'dinov2, registers': ('dinov2-reg-base-p14', dinov2_registers, False),
    'TokenReduction': ('deit-small-p16', token_reduction, True),
    'the CLCA authors': ('deit3-base-p16', authors, True),
}


def native(backbone):
    return 518 if 'dinov2' in backbone else 224


@pytest.fixture(params=LAYOUTS)
def layout(request):
    """Backbone, timm weights, content of the file, with a head?"""
    backbone, release, with_head = LAYOUTS[request.param]
    weights = theirs(backbone).state_dict()
    if 'clip' in backbone:
        weights['head.bias'] = torch.zeros(5).double()
    return backbone, weights, release(weights), with_head


@pytest.mark.usefixtures('report_is_golden')
def test_layout_equals_timm(layout, load):
    backbone, weights, checkpoint, with_head = layout
    size = native(backbone)
    here = load(checkpoint, ours(backbone, size))
    there = resized(backbone, weights, size)
    features, logits = differences(here, there, size)
    assert features < 1e-9
    assert logits < 1e-9 if with_head else logits > 1e-3


def test_layout_loads_into_a_backbone(layout, load):
    backbone, _, checkpoint, _ = layout
    whole = load(checkpoint, ours(backbone, 112)).state_dict()
    alone = load(checkpoint, ours(backbone, 112).backbone)
    for name, value in alone.state_dict().items():
        assert torch.equal(value, whole[f'backbone.{name}']), name


@pytest.mark.parametrize('backbone', [*NAMES][::4])
def test_backbone_equals_timm_if_resized(backbone, load):
    weights = theirs(backbone).state_dict()
    here = load(weights, ours(backbone, 336))
    there = resized(backbone, weights, 336)
    assert max(differences(here, there, 336)) < 1e-9


FULL = dict(embed_dim=768, depth=12, num_heads=12)


@pytest.mark.slow
def test_full_size_equals_timm(load):
    """Twelve layers."""
    backbone = 'dinov2-reg-base-p14'
    there = theirs(backbone, img_size=224, **FULL)
    weights = there.state_dict()
    for name in weights:  # keep the sum of 12 layers small
        if '.proj.weight' in name or '.fc2.weight' in name:
            weights[name] *= 0.02
    here = load(weights, ours(backbone, 224, small=False))
    assert max(differences(here, there, 224)) < 1e-9


@pytest.mark.usefixtures('report_is_golden')
@pytest.mark.parametrize(
    'kind, size',
    [('classifier', 448), ('backbone', 224), ('pretraining', 224)],
)
def test_mmpretrain_names_equal_timm(kind, size, load):
    """Rename timm weights to mmpretrain."""
    weights = theirs('vit-base-p16').state_dict()
    own = load(weights, ours('vit-base-p16', 224)).state_dict()
    bare = {
        name.removeprefix('backbone.'): value
        for name, value in own.items()
        if name.startswith('backbone.')
    }
    encoder = {k: v for k, v in own.items() if k.startswith('backbone.')}
    beside = mlp('neck') | mlp('head.predictor') | mlp('momentum_encoder')
    weights_of = dict(
        classifier=own, backbone=bare, pretraining={**encoder, **beside}
    )
    checkpoint = dict(meta={}, state_dict=weights_of[kind])
    here = load(checkpoint, ours('vit-base-p16', size))
    there = resized('vit-base-p16', weights, size)
    features, logits = differences(here, there, size)
    assert features < 1e-9
    assert logits < 1e-9 if kind == 'classifier' else logits > 1e-3


def test_sinkhorn_centers_are_loaded(load):
    """Sinkhorn centers have an unusual name."""
    options = dict(
        reducer=dict(type='mmclca.Sinkhorn', keep_rate=0.5), reduce_at=(0, 1)
    )
    backbone = {**piece('deit-small-p16').model.backbone, **PLAIN, **options}
    here = MODELS.build(dict(backbone, arch=ARCH))
    weights = theirs('deit-small-p16').state_dict()
    centers = [torch.randn_like(c) for c in here.reducer.stages]
    weights |= {f'cluster_layers.{i}.v': c for i, c in enumerate(centers)}
    here = load({'model': weights}, here)
    for center, came in zip(centers, here.reducer.stages, strict=True):
        assert torch.equal(center, came)
