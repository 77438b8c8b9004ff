# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from copy import deepcopy

import numpy as np
import pytest
import torch
from small_models import (
    CACHE,
    CACHES,
    REDUCERS,
    build,
    classifier,
    reduced_model,
    vit,
)
from small_models import images as noise
from torch.testing import assert_close

from mmclca.apis.token_facts import LastLayerRecorder, token_facts
from mmclca.models import fuse
from mmclca.models.recording import AttentionRecorder, recording_copy
from mmclca.models.reduction.attention import attend, logits_of
from mmclca.visualization import class_activation_maps, rollout
from mmclca.visualization.rollout import rollout_rows


def images(batch=2):
    return noise(batch).double()


def tokens_of(model, x):
    """Tokens and attention per layer of a model without reduction."""
    backbone = model.backbone
    x = backbone.embed(x)[0].x
    for layer in backbone.layers:
        update, seen = attend(layer.attn, layer.ln1(x))
        yield x, logits_of(seen.q, seen.k, None).softmax(-1).mean(1)
        x = x + update
        x = layer.ffn(layer.ln2(x), identity=x)


def test_rollout_equals_the_paper_without_reduction():
    model, x = reduced_model('EViT', keep_rate=1.0), images()
    with torch.no_grad():
        rows = torch.eye(17).double()
        for _, attn in tokens_of(model, x):
            rows = (0.5 * attn + 0.5 * torch.eye(17)) @ rows
    found = rollout(model, x)
    assert_close(found, rows[:, 0, 1:].reshape(2, 4, 4))
    assert found.sum(dim=(1, 2)).max() < 1


def final_rows(model, x):
    copied = recording_copy(model, AttentionRecorder)
    with torch.no_grad():
        copied(x, mode='tensor')
        layers = copied.backbone.recorder.layers
        return layers, rollout_rows(layers, copied.backbone.cache)


def by_hand(layers, recover_at, image):
    """Rows for EViT with an average and a CLR token, in plain Python."""
    rows, cache, pooled, done = list(torch.eye(18).double()), [], 17, 1
    for i, layer in enumerate(layers):
        attn = layer.attn[image]
        rows = [
            sum(a * row for a, row in zip(line, rows, strict=True)) / 2
            + rows[n] / 2
            for n, line in enumerate(attn)
        ]
        for record in layer.left.trace[done:]:
            kept = [rows[n] for n in record.index[image]]
            mix = record.mix[image, 0]
            fused = sum(w * row for w, row in zip(mix, rows, strict=True))
            rows = [*kept, fused / mix.sum()]
            pooled, done = len(rows), done + 1
        if i in recover_at:
            pooled = len(rows)
            rows, cache = rows + cache, []
            done += 1
        if i < recover_at[-1]:
            average = sum(rows[1:pooled]) / (pooled - 1)
            cache += [average, rows[-1]]
    return torch.stack(rows)


def test_rollout_equals_a_slow_loop_with_fused_and_cached_tokens():
    model, x = reduced_model('EViT', CACHE), images()
    layers, rows = final_rows(model, x)
    for image in range(2):
        assert_close(rows[image], by_hand(layers, (1, 3, 4), image))
    assert_close(rollout(model, x), rows[:, 0, 1:17].reshape(2, 4, 4))


@pytest.mark.parametrize('reducer', REDUCERS)
@pytest.mark.parametrize('cache', CACHES)
def test_rows_are_distributions_for_every_reducer_and_cache(reducer, cache):
    model, x = reduced_model(reducer, cache), images(3)
    layers, rows = final_rows(model, x)
    assert len(layers) == 6
    assert rows.min() >= 0
    assert_close(rows.sum(-1), torch.ones_like(rows[..., 0]))
    maps = rollout(model, x)
    assert maps.shape == (3, 4, 4) and maps.min() >= 0
    assert_close(rollout(model, x[1:2])[0], maps[1])


def test_rollout_supports_registers_and_wide_images():
    model = reduced_model('ToMe', CACHE, num_registers=2, img_size=(32, 48))
    x = torch.randn(2, 3, 32, 48).double()
    assert rollout(model, x).shape == (2, 4, 6)
    _, rows = final_rows(model, x)
    assert rows.size(-1) == 1 + 24 + 2 + 1


def test_rollout_leaves_the_model_unchanged():
    model, x = reduced_model('EViT', CACHE), images()
    reducer, names = model.backbone.reducer, list(model.state_dict())
    with torch.no_grad():
        before = model(x, mode='tensor')
        rollout(model, x)
        after = model(x, mode='tensor')
    assert model.backbone.reducer is reducer
    assert list(model.state_dict()) == names
    assert torch.equal(before, after)


def test_rollout_supports_a_plain_vit():
    ours = build(classifier(vit(2))).eval()
    config = classifier(dict(vit(2), type='VisionTransformer'))
    plain = build(dict(config, type='ImageClassifier')).eval()
    plain.load_state_dict(ours.state_dict())
    x = noise()
    assert torch.equal(rollout(plain, x), rollout(ours, x))


def test_rollout_refuses_backbones_without_cls():
    lenet = dict(type='LeNet5', num_classes=-1)
    head = dict(type='LinearClsHead', num_classes=5, in_channels=84)
    model = build(dict(type='ImageClassifier', backbone=lenet, head=head))
    with pytest.raises(ValueError, match='LeNet5'):
        rollout(model, noise())
    config = vit(2, with_cls_token=False, out_type='avg_featmap')
    with pytest.raises(ValueError, match='with_cls_token'):
        rollout(build(classifier(config)), noise())


@pytest.fixture
def models():
    """Model with branches, and with fused branches."""
    reducer = dict(type='mmclca.EViT', keep_rate=0.5)
    backbone = vit(3, branches=2, reducer=reducer, reduce_at=(1,), cache=CACHE)
    model = build(classifier(backbone)).eval().double()
    return model, fuse(deepcopy(model))


@pytest.mark.parametrize('maps', [rollout, class_activation_maps])
def test_maps_are_equal_after_fusing_branches(models, maps):
    x = images()
    one, other = (maps(model, x) for model in models)
    assert one.any()
    assert_close(one, other)


@torch.no_grad()
def test_token_facts_are_equal_after_fusing_branches(models):
    x, facts = images(), []
    for model in models:
        copied = recording_copy(model, LastLayerRecorder)
        copied(x, mode='tensor')
        layers = copied.backbone.recorder.layers
        read = model.backbone.last_cls_attention(x, layers[-1].entered)
        facts.append(token_facts(layers, read, (4, 4)))
    for one, other in zip(*facts, strict=True):
        assert one['tokens'] == other['tokens'] == [18, 11, 13]
        for name in ('attribution', 'cls_attention', 'kept'):
            np.testing.assert_allclose(one[name], other[name])
