# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from copy import deepcopy
from itertools import cycle

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

from mmclca.apis.token_statistics import LastLayerRecorder, compute_statistics
from mmclca.models import fuse
from mmclca.models.recording import AttentionRecorder, recording_copy
from mmclca.models.reduction.attention import attend, attention_logits
from mmclca.visualization import class_activation_maps, rollout
from mmclca.visualization.rollout import rollout_rows


def images(batch=2):
    return noise(batch).double()


def tokens_of(model, x):
    """Tokens and attention per layer of a model without reduction."""
    backbone = model.backbone
    x = backbone.embed(x)[0].features
    for layer in backbone.layers:
        update, seen = attend(layer.attn, layer.ln1(x))
        yield x, attention_logits(seen.q, seen.k, None).softmax(-1).mean(1)
        x = x + update
        x = layer.ffn(layer.ln2(x), identity=x)


def test_rollout_equals_the_paper_without_reduction():
    model, x = reduced_model('EViT', keep_rate=1.0), images()
    with torch.no_grad():
        before = model(x, mode='tensor')
        rows = torch.eye(17).double()
        for _, attn in tokens_of(model, x):
            rows = (0.5 * attn + 0.5 * torch.eye(17)) @ rows
    found = rollout(model, x)
    assert_close(found, rows[:, 0, 1:].reshape(2, 4, 4))
    assert found.sum(dim=(1, 2)).max() < 1
    with torch.no_grad():  # the model is unchanged
        assert torch.equal(model(x, mode='tensor'), before)


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


@pytest.mark.parametrize(
    'reducer, cache', [*zip(REDUCERS, cycle(CACHES[::-1]))]
)
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
    x = noise(2, 32, 48).double()
    assert rollout(model, x).shape == (2, 4, 6)
    assert final_rows(model, x)[1].size(-1) == 1 + 24 + 2 + 1


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


@torch.no_grad()
def facts(model, x):
    """Attribution, attention and kept patches per image in the last layer."""
    copied = recording_copy(model, LastLayerRecorder)
    copied(x, mode='tensor')
    layers = copied.backbone.recorder.layers
    read = model.backbone.last_cls_attention(x, layers[-1].entered)
    found = compute_statistics(layers, read[0], read[1].patch_weights, (4, 4))
    assert [one['tokens'] for one in found] == [[18, 11, 13]] * 2
    names = ('attribution', 'cls_attention', 'kept')
    arrays = [np.ravel(one[name]) for one in found for name in names]
    return torch.tensor(np.concatenate(arrays))


@pytest.mark.parametrize('maps', [rollout, class_activation_maps, facts])
def test_maps_are_equal_after_fusing_branches(maps):
    reducer = dict(type='mmclca.EViT', keep_rate=0.5)
    backbone = vit(3, branches=2, reducer=reducer, reduce_at=(1,), cache=CACHE)
    model, x = build(classifier(backbone)).eval().double(), images()
    one, other = maps(model, x), maps(fuse(deepcopy(model)), x)
    assert one.any()
    assert_close(one, other)
