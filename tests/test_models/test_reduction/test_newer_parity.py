# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Newer reducers against their public code, in float64.

The cases are skipped if missing, see ``newer_cases.py``.
"""

import math

import pytest
import torch
from mmpretrain.structures import DataSample
from newer_cases import DRAWN, SHAPES, each
from parity import close
from small_models import token_counts
from toy_reducers import shape

from mmclca.checkpoints.load import load
from mmclca.models.reduction.attention import Attended
from mmclca.models.reduction.learned_counts import LearnedCount
from mmclca.models.reduction.reducers.ppt import scores
from mmclca.models.reduction.tokens import Tokens
from mmclca.models.reduction.trace import Merged
from mmclca.registry import MODELS


def classifier(case, **reducer):
    """Build a classifier with stored weights."""
    dims = case['embed_dim']
    reduce_at = case.get('reduce_at', [1, 2])
    if not {'num_tokens', 'prune', 'target'} & set(reducer):
        counts = case['expect']['tokens_out']
        reducer['num_tokens'] = [counts[i] - 1 for i in reduce_at]
    backbone = dict(
        type='mmclca.TokenReductionViT',
        arch=dict(
            embed_dims=dims,
            num_layers=case['depth'],
            num_heads=case['num_heads'],
            feedforward_channels=int(dims * case['mlp_ratio']),
        ),
        img_size=case['img_size'],
        patch_size=case['patch_size'],
        norm_cfg=dict(type='LN', eps=case['eps']),
        reduce_at=reduce_at,
        reducer=reducer,
    )
    head = dict(type='VisionTransformerClsHead', init_cfg=None)
    head.update(num_classes=case['num_classes'], in_channels=dims)
    config = dict(type='mmclca.TokenReductionClassifier')
    model = MODELS.build(dict(config, backbone=backbone, head=head)).double()
    weights = DRAWN.state_dict(case, SHAPES)
    weights = {k: w for k, w in weights.items() if '_ddp' not in k}
    load(model, weights, strict=False)
    return model.eval()


@torch.no_grad()
def check_network(case, model):
    x, expect = DRAWN.images(case), case['expect']
    assert close(model(x), expect['logits'])
    left = [leaving for _, leaving in token_counts(model.backbone, x)]
    assert left == expect['tokens_out']


def check_training(case, model):
    """Compare cross-entropy and gradient norms with the public code."""
    samples = [DataSample().set_gt_label(i) for i in DRAWN.targets(case)]
    losses = model.train()(DRAWN.images(case), samples, mode='loss')
    losses['loss'].backward()
    assert close(losses['loss'].detach(), case['expect']['train_loss'])
    ours = dict(model.named_parameters())
    for key, norm in case['expect']['grad_norm'].items():
        grad = ours[NAMES[key]].grad.norm().item()
        assert grad == pytest.approx(norm, rel=1e-6), key


NAMES = {
    'cls_token': 'backbone.cls_token',
    'pos_embed': 'backbone.pos_embed',
    'blocks.0.attn.qkv.weight': 'backbone.layers.0.attn.qkv.weight',
    'blocks.1.attn.qkv.weight': 'backbone.layers.1.attn.qkv.weight',
    'blocks.3.mlp.fc2.weight': 'backbone.layers.3.ffn.layers.1.weight',
    'head.weight': 'head.layers.head.weight',
}


def mctf(case):
    return dict(
        type='mmclca.MCTF',
        tau=case['tau'],
        bidirectional=bool(case['bidirection']),
        pooling=('size', 'weighted')[case['pooling']],
    )


def pitome(case):
    """By depth, or by the lists of a case."""
    plain = dict(type='mmclca.PiToMe', prop_attn=False)
    return plain, dict(
        plain, bsm=case['bsm'][1:3], margin=case['margins'][1:3]
    )


def diffrate(case):
    steps = {
        step: [count - 1 for count in case[step][1:3]]
        for step in ('prune', 'merge')
    }
    return [dict(steps, type='mmclca.DiffRate', clamp=False)]


def atc(case):
    options = dict(linkage=case['linkage'], prop_attn=case['prop_attn'])
    return [dict(options, type='mmclca.ATC')]


def ppt(case):
    options = dict(threshold=case['threshold'], prop_attn=case['prop_attn'])
    return [dict(options, type='mmclca.PPT', relative=False)]


REDUCERS = dict(  # reducer configs for a case
    atc_vit=atc,
    tofu_vit=lambda case: [dict(type='mmclca.ToMe', merge='mlerp')],
    ppt_vit=ppt,
    pitome_vit=pitome,
    diffrate_vit=diffrate,
    mctf_vit=lambda case: [mctf(case)],
)


@each(*REDUCERS)
def test_model_equals_public_code(case):
    if case.get('one_step_ahead', 2) != 2:
        pytest.skip('left out: the paper fuses the attention map, too')
    for reducer in REDUCERS[case['system']](case):
        model = classifier(case, **reducer)
        check_network(case, model)
        if case['system'] in ('atc_vit', 'ppt_vit'):
            check_training(case, model)


def reduced(tokens, attended, **reducer):
    """Return tokens after a single stage."""
    sizes = dict(backbone=shape(num_patches=tokens.num_patches, num_stages=1))
    return MODELS.build(reducer | sizes).after_attention(tokens, attended, 0)


def given(case):
    """Return tokens for a case, with sizes if it has any."""
    x = DRAWN.given(case, 'x')
    size = DRAWN.given(case, 'size') if 'size' in case['inputs'] else None
    return Tokens(x, weight=size, num_patches=x.size(1) - 1)


def keyed(case):
    """Return an attention with the metric of a case as keys."""
    k = DRAWN.given(case, 'metric').unsqueeze(1)
    return Attended(k, k, k)


def check_stage(case, tokens):
    """Compare new tokens, sizes and targets."""
    expect = case['expect']
    assert close(tokens.features, expect['merged'])
    if 'size' in expect:
        assert close(tokens.weights, expect['size'])
    for record in tokens.trace:
        if isinstance(record, Merged):
            assert record.target.tolist() == expect['target']


def atc_cluster(case, N):
    left = min(case['num_clusters'], N - 1)
    return dict(type='mmclca.ATC', num_tokens=[left], linkage=case['linkage'])


def tofu_merge(case, N):
    left = N - 1 - math.floor(N - N * case['ratio'])
    early = dict(tofu='merge', prune='prune')[case['mode']]
    options = dict(num_tokens=[left], early=early, merge='mlerp')
    return dict(options, type='mmclca.ToMe')


def pitome_match(case, N):
    M = N - 1
    return dict(
        type='mmclca.PiToMe',
        num_tokens=[M - math.floor(M - M * case['ratio'])],
        bsm=[case['bsm']],
        margin=[case['energy_margin']],
    )


STAGES = dict(
    atc_cluster=atc_cluster, tofu_merge=tofu_merge, pitome_match=pitome_match
)


@each(*STAGES)
def test_stage_equals_public_code(case):
    tokens = given(case)
    reducer = STAGES[case['system']](case, tokens.features.size(1))
    check_stage(case, reduced(tokens, keyed(case), **reducer))


@each('ppt_score')
def test_ppt_scores_equal_public_code(case):
    q, k, bias = seeing(DRAWN.given(case, 'attn'))
    score = scores(Attended(q, k, DRAWN.given(case, 'v'), bias))
    assert close(score, case['expect']['score'])
    assert close(score.var(dim=1), case['expect']['variance'])
    kept = score.argsort(dim=1, descending=True) + 1
    num_kept = score.size(1) - case['r']
    expected = [[0, *row] for row in kept[:, :num_kept].tolist()]
    assert expected == case['expect']['kept']


def seeing(attn):
    """Return queries, keys and bias for an attention map (B, H, N, N)."""
    N = attn.size(-1)
    itself = torch.eye(N, dtype=attn.dtype).expand_as(attn)
    return attn.log() * N**0.5, itself, None


@each('diffrate_merge')
def test_diffrate_merges_equal_public_code(case):
    """Tokens are sorted by score; none is dropped."""
    tokens, left = given(case), case['kept'] - 1
    N = tokens.features.size(1)
    score = torch.arange(N, 0, -1).double().log().expand(2, 1, 1, N)
    q = torch.ones(2, 1, N, 1).double()
    attended = Attended(q, q, q, score)
    steps = dict(prune=[N - 1], merge=[left], clamp=False)
    merged = reduced(tokens, attended, type='mmclca.DiffRate', **steps)
    assert close(merged.features, case['expect']['merged'])
    assert close(merged.weight, case['expect']['size'])
    target = merged.trace[0].target[:, case['kept'] :]
    assert target.tolist() == case['expect']['target']


@each('mctf_fuse')
def test_mctf_fusion_equals_public_code(case):
    tokens = given(case)
    left = tokens.num_patches - case['r']
    q, k, bias = seeing(DRAWN.given(case, 'attn'))
    sizes = dict(backbone=shape(num_patches=tokens.num_patches, num_stages=1))
    model = MODELS.build(dict(mctf(case), num_tokens=[left], **sizes))
    fused = model.before_attention(tokens, Attended(q, k, k, bias), 0)
    check_stage(case, fused)


@each('diffrate_rate')
def test_diffrate_rate_equals_public_code(case):
    expect, P = case['expect'], case['patches']
    rate = LearnedCount(P, case['granularity']).double()
    with torch.no_grad():
        rate.logits.copy_(DRAWN.given(case, 'logits'))
    assert rate.candidates.tolist() == expect['candidates']
    kept, mask = rate() + 1, torch.cat((torch.ones(1), rate.mask()))
    assert kept.item() == expect['kept']
    assert mask.tolist() == expect['mask']
    ramp = torch.arange(1, P + 2).double() / (P + 1)
    (kept + (mask * ramp).sum()).backward()
    assert close(rate.logits.grad, expect['grad'])


@each('diffrate_train')
def test_diffrate_training_equals_public_code(case):
    reduce_at = [1, 2, 3]
    reducer = dict(type='mmclca.DiffRate', target=1.0, clamp=False)
    reducer['granularity'] = case['granularity']
    model = classifier(dict(case, reduce_at=reduce_at), **reducer)
    reducer, expect = model.backbone.reducer, case['expect']
    weights, grads = DRAWN.state_dict(case, SHAPES), {}
    key = 'blocks.{}.{}_ddp.selected_probability'
    for layer, rates in zip(reduce_at, reducer.stages, strict=True):
        for step, rate in rates.named_children():
            rate.logits.data = weights[key.format(layer, step)].double()
            grads[key.format(layer, step)] = rate.logits
            kept = expect[f'{step}_kept'][layer]
            assert rate().item() + 1 == kept
    samples = [DataSample().set_gt_label(i) for i in DRAWN.targets(case)]
    x = DRAWN.images(case)
    losses = model.train()(x, samples, mode='loss')
    assert close(model(x).detach(), expect['train_logits'])
    C, N = case['embed_dim'], 1 + reducer.num_patches
    others = N * C * 3 * case['patch_size'] ** 2 + C * case['num_classes']
    flops = reducer.compute_gmacs() + others / 1e9
    assert close(1e9 * flops.detach(), expect['flops'])
    loss = (flops * case['flops_scale'] - case['target']).square()
    assert close(loss.detach(), expect['loss_flops'])
    assert close(losses['loss'].detach(), expect['loss_cls'])
    (5 * loss + losses['loss']).backward()
    for name, grad in expect['grad'].items():
        assert close(grads[name].grad, grad), name
