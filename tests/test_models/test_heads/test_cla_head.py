# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import math

import pytest
import torch
from mmpretrain.structures import DataSample
from small_models import build

from mmclca.models import CLAHead

B, C, G, CLASSES = 3, 8, 4, 5


def head(**options):
    return build(
        dict(
            type='mmclca.CLAHead',
            num_classes=CLASSES,
            in_channels=C,
            num_layers=G,
            **options,
        )
    )


@pytest.fixture
def feats():
    """CLS tokens of G layers, each (B, C)."""
    return tuple(torch.randn(B, C) for _ in range(G))


@pytest.fixture
def samples():
    return [DataSample().set_gt_label(label) for label in (4, 0, 2)]


def slow_scores(head, feats, multiplier):
    """Compute the scores in evaluation by loops."""
    norm1, depth_wise, norm2, _, point_wise = head.layers

    def normalize(norm, x, c):
        x = (x - norm.running_mean[c]) / (norm.running_var[c] + 1e-5) ** 0.5
        return x * norm.weight[c] + norm.bias[c]

    scores = point_wise.bias.repeat(B, 1)
    for b in range(B):
        for m in range(multiplier * C):
            c = m // multiplier
            made = depth_wise.bias[m]
            for g in range(G):
                token = normalize(norm1, feats[g][b, c], c)
                made = made + depth_wise.weight[m, 0, g] * token
            made = normalize(norm2, made, m)
            made = made * (1 + torch.erf(made / math.sqrt(2))) / 2
            scores[b] = scores[b] + point_wise.weight[:, m, 0] * made
    return scores


@pytest.mark.parametrize('multiplier', [1, 2, 3])
def test_cla_head_equals_loop(feats, multiplier):
    cla = head(multiplier=multiplier)
    cla.train()(feats)  # changes the running statistics
    cla.eval()
    with torch.no_grad():
        expected = slow_scores(cla, feats, multiplier)
        assert torch.allclose(cla(feats), expected, atol=1e-5)
        assert cla.pre_logits(feats).shape == (B, multiplier * C)


def test_cla_head_statistics_cover_batch_and_layers(feats):
    cla = head().train()
    cla(feats)
    tokens = torch.cat(feats)  # (G * B, C)
    norm = cla.layers[0]
    assert torch.allclose(norm.running_mean, 0.1 * tokens.mean(0))
    assert torch.allclose(norm.running_var, 0.9 + 0.1 * tokens.var(0))


def test_cla_head_has_parameter_counts_of_the_paper():
    cla = CLAHead(num_classes=80, in_channels=768, num_layers=4)
    counts = [sum(p.numel() for p in m.parameters()) for m in cla.layers]
    assert counts == [1536, 7680, 3072, 0, 122960]
    assert sum(counts) == 135248
    shapes = {name: tuple(p.shape) for name, p in cla.named_parameters()}
    assert shapes['layers.1.weight'] == (1536, 1, 4)
    assert shapes['layers.4.weight'] == (80, 1536, 1)


def test_cla_head_raises_if_number_of_layers_differs(feats):
    for wrong in (feats[:-1], feats + feats[:1]):
        with pytest.raises(RuntimeError):
            head().eval()(wrong)


@pytest.mark.parametrize('topk', [3, (1, 2)])
def test_cla_head_reports_accuracy_for_each_k(feats, samples, topk):
    losses = head(cal_acc=True, topk=topk).loss(feats, samples)
    ks = (topk,) if isinstance(topk, int) else topk
    assert losses.keys() == {'loss', *(f'accuracy_top-{k}' for k in ks)}
