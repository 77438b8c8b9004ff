# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Parity of the baselines with their public code, in float64."""

import pytest
import torch
from mmpretrain.structures import DataSample
from newer_cases import CASES, DRAWN, SHAPES, each
from parity import close

from mmclca.checkpoints.families.family import renamed
from mmclca.checkpoints.families.vit import TRANSFG
from mmclca.checkpoints.load import load
from mmclca.models.baselines import losses
from mmclca.models.baselines.part_selection import (
    mutual_attention,
    select_part_tokens,
)
from mmclca.models.baselines.shuffled_view import shuffle_parts
from mmclca.models.baselines.sim_trans import structure
from mmclca.models.reduction.attention import Attended
from mmclca.registry import MODELS

KINDS = dict(transfg='TransFG', ffvt='FFVT', sim_trans='SIMTrans')
PROJECTIONS = ('query', 'key', 'value')


def tensors(case, *names):
    """Inputs of a case; all except labels require gradients."""
    given = [DRAWN.given(case, name) for name in names]
    return [x.requires_grad_(x.is_floating_point()) for x in given]


def check(case, loss, **grads):
    """Compare a loss and the gradients named in the case."""
    loss.backward()
    assert close(loss.detach(), case['expect']['loss'])
    for name, x in grads.items():
        assert close(x.grad, case['expect'][name])


@pytest.mark.parametrize('name', ['transfg_contrast', 'sim_trans_contrast'])
def test_contrast_equals_public_code(name):
    for case in (case for case in CASES if case['system'] == name):
        features, labels = tensors(case, 'features', 'labels')
        loss = getattr(losses, name)(features, labels)
        check(case, loss, grad=features)


@each('cle_vit_loss')
def test_cle_vit_loss_equals_public_code(case):
    logits, features, labels = tensors(case, 'logits', 'features', 'labels')
    weights = [case[name] for name in ('origin_w', 'swap_w', 'con_w')]
    loss = losses.cle_vit_loss(
        logits, features, labels, losses.CLEViTWeights(*weights)
    )
    check(case, loss, grad_logits=logits, grad_features=features)


@each('cle_vit_triplet')
def test_cle_vit_triplet_equals_public_code(case):
    (features,) = tensors(case, 'features')
    negative = torch.tensor(case['negative'])
    margin = case['triplet_margin']
    loss = losses.cle_vit_triplet(features, negative, margin)
    check(case, loss, grad=features)


@each('cle_vit_shuffle')
def test_shuffle_parts_equals_public_code(case):
    image = DRAWN.given(case, 'image')
    shuffled = shuffle_parts(image, case['parts'], case['permutation'])
    assert close(shuffled, case['expect']['image'])


@each('transfg_parts')
def test_select_parts_equals_public_code(case):
    maps = [DRAWN.given(case, f'attn{i}') for i in range(case['layers'])]
    parts = select_part_tokens(maps[-1][:, :, :1], maps, torch.matmul)
    assert parts.tolist() == case['expect']['part']


@each('ffvt_maws')
def test_mutual_attention_equals_public_code(case):
    logits = DRAWN.given(case, 'logits')
    N = logits.size(-1)
    keys = N**0.5 * torch.eye(N, dtype=logits.dtype).expand_as(logits)
    score = mutual_attention(Attended(logits, keys, keys))
    assert close(score, case['expect']['score'])
    order = score.topk(case['num_token']).indices
    assert order.tolist() == case['expect']['order']


@each('sim_trans_structure')
def test_structure_equals_public_code(case):
    attn, side = DRAWN.given(case, 'attn').softmax(dim=-1), case['side']
    nodes, weights, anchor = structure(attn, side)
    expect = case['expect']
    assert close(nodes, expect['coord'])
    assert anchor.tolist() == expect['index']
    assert [[i // side, i % side] for i in anchor.tolist()] == expect['anchor']
    adjacency = weights.unsqueeze(2) * weights.unsqueeze(1)
    assert close(torch.tensor(DRAWN.sums(adjacency)), expect['weight'])
    assert close(adjacency[:, 0], expect['weight_row'])


def config(case):
    """Model config for a case."""
    name, C = case['system'].removesuffix('_vit'), case['embed_dim']
    arch = dict(
        embed_dims=C,
        num_layers=case['depth'],
        num_heads=case['num_heads'],
        feedforward_channels=4 * C,
    )
    backbone = dict(type=f'mmclca.{KINDS[name]}', arch=arch)
    backbone.update({key: case[key] for key in ('img_size', 'patch_size')})
    backbone['norm_cfg'] = dict(type='LN', eps=case['eps'])
    if case.get('split') == 'overlap':
        backbone['stride'] = case['stride']
    if 'num_token' in case:
        backbone['num_tokens'] = case['num_token']
    head = dict(num_classes=case['num_classes'], in_channels=C)
    has_own = name == 'sim_trans'
    head['type'] = 'mmclca.SIMTransHead' if has_own else 'LinearClsHead'
    model = dict(type='ImageClassifier', backbone=backbone, head=head)
    if name != 'ffvt':
        model.update(type='mmclca.ContrastiveClassifier', contrast=name)
    return model


def gradient(model, name):
    """Gradient for a parameter name in the public code."""
    *_, part, _ = name.split('.')
    is_projection = part in PROJECTIONS
    if is_projection:
        name = name.replace(part, 'qkv')
    for old, new in TRANSFG.spelling:
        name = name.replace(old, new)
    own = renamed(name, TRANSFG).replace('foreign_pos_embed', 'pos_embed')
    grad = dict(model.named_parameters())[own].grad
    if is_projection:
        return grad.chunk(3)[PROJECTIONS.index(part)]
    return grad


def check_network(case, path, **backbone):
    """Compare logits, training loss and gradients with the public code."""
    settings = config(case)
    settings['backbone'].update(backbone)
    model = MODELS.build(settings).double()
    weights = DRAWN.state_dict(case, SHAPES)
    torch.save({'model': weights}, path / 'public.pth')
    load(model, str(path / 'public.pth'), strict=False)
    images, expect = DRAWN.images(case), case['expect']
    with torch.no_grad():
        assert close(model.eval()(images), expect['logits'])
    samples = [DataSample().set_gt_label(i) for i in DRAWN.targets(case)]
    found = model.train()(images, samples, mode='loss')
    loss = sum(value for name, value in found.items() if 'loss' in name)
    loss.backward()
    assert close(loss.detach(), expect['train_loss'])
    for name, norm in expect['grad_norm'].items():
        grad = gradient(model, name).norm().item()
        assert grad == pytest.approx(norm, rel=1e-6), name


@pytest.mark.parametrize('keep_maps', [True, False])
@each('transfg_vit')
def test_transfg_equals_public_code(case, keep_maps, tmp_path):
    check_network(case, tmp_path, keep_maps=keep_maps)


@pytest.mark.parametrize('name', ['ffvt_vit', 'sim_trans_vit'])
def test_network_equals_public_code(name, tmp_path):
    for case in (case for case in CASES if case['system'] == name):
        check_network(case, tmp_path)
