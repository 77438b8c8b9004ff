# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from itertools import permutations

import pytest
import torch
from cka import cka, gram_matrices, hsic
from small_models import CACHE, build, classifier, reduced_model, vit
from small_models import images as noise
from torch.testing import assert_close

from mmclca.datasets.batches import Batch

AVERAGE = dict(out_type='avg_featmap')


def gram(x):
    return (x @ x.T)[None]


def test_hsic_equals_its_definition():
    # mean over all distinct i, j, k, l
    a, b = torch.randn(6, 3).double(), torch.randn(6, 2).double()
    k, m = gram(a)[0], gram(b)[0]
    terms = [
        k[i, j] * (m[i, j] + m[q, r] - 2 * m[i, q])
        for i, j, q, r in permutations(range(6), 4)
    ]
    assert_close(hsic(gram(a), gram(b))[0, 0], sum(terms) / len(terms))


def test_cka_is_one_up_to_rotation_scale_and_shift():
    x = torch.randn(5, 12, 4).double()
    rotation = torch.linalg.qr(torch.randn(4, 4).double())[0]
    first = [gram(one) for one in x]
    second = [gram(3 * one @ rotation + 1) for one in x]
    assert_close(cka(first, second), torch.ones(1, 1).double())


def test_cka_is_unbiased_for_any_batch_size():
    x = torch.randn(4096, 4).double()
    y = x[:, :2] + torch.randn(4096, 2)

    def value(other, size):
        return cka(*([gram(one) for one in z.split(size)] for z in (x, other)))

    assert_close(value(y, 8), value(y, 64), rtol=0.03, atol=0)
    assert abs(value(torch.randn(4096, 50).double(), 8).item()) < 0.1


def outputs(model, x):
    """Layer outputs, before tokens are restored from the cache."""
    found = []
    handles = [
        layer.ffn.register_forward_hook(lambda *a: found.append(a[2]))
        for layer in model.backbone.layers
    ]
    with torch.no_grad():
        model(x, mode='tensor')
    for handle in handles:
        handle.remove()
    return found


def test_gram_matrices_equal_hooked_layer_outputs():
    model, x = reduced_model('EViT', CACHE), noise(10).double()
    split = [Batch(x[:6], [0] * 6, []), Batch(x[6:], [0] * 4, [])]
    lengths = [y.size(1) for y in outputs(model, x)]
    assert len(set(lengths)) > 2
    features = dict(
        cls=lambda y: y[:, 0],
        mean=lambda y: y[:, 1:].mean(1),
        all=lambda y: y.flatten(1),
    )
    for feature, take in features.items():
        grams = gram_matrices(model, split, feature)
        assert [len(one) for one in grams] == [6, 6]
        for found, part in zip(grams, (x[:6], x[6:]), strict=True):
            wanted = [gram(take(y))[0] for y in outputs(model, part)]
            assert_close(found, torch.stack(wanted))
    values = cka(grams, grams)
    assert_close(values.diagonal(), torch.ones(6).double())
    assert_close(values, values.T)


@pytest.mark.parametrize('feature', ['cls', 'mean', 'all'])
def test_gram_matrices_ignore_padding_of_ats(feature):
    model, x = reduced_model('ATS'), noise(6).double()
    (whole, *alone) = gram_matrices(
        model, [Batch(part, [], []) for part in (x, *x.split(1))], feature
    )
    norms = torch.stack([one[:, 0, 0] for one in alone], dim=1)
    assert_close(whole.diagonal(dim1=1, dim2=2), norms)


def test_features_and_batches_are_refused():
    model = build(classifier(vit(2, with_cls_token=False, **AVERAGE)))
    with pytest.raises(ValueError, match="feature='cls'"):
        gram_matrices(model, [])
    with pytest.raises(ValueError, match='4 images'):
        hsic(torch.ones(1, 3, 3), torch.ones(1, 3, 3))
