# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
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
    assert cla.layers[1].weight.shape == (1536, 1, 4)
    assert head(multiplier=3).layers[1].weight.shape == (3 * C, 1, G)


def test_cla_head_raises_if_number_of_layers_differs(feats):
    for wrong in (feats[:-1], feats + feats[:1]):
        with pytest.raises(RuntimeError):
            head().eval()(wrong)


@pytest.mark.parametrize('topk', [3, (1, 2)])
def test_cla_head_reports_accuracy_for_each_k(feats, samples, topk):
    losses = head(cal_acc=True, topk=topk).loss(feats, samples)
    ks = (topk,) if isinstance(topk, int) else topk
    assert losses.keys() == {'loss', *(f'accuracy_top-{k}' for k in ks)}
