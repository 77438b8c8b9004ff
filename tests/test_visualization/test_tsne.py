# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import mmcv
import numpy as np
import pytest
import torch
from small_models import CACHE, reduced_model
from small_models import images as noise
from torch.testing import assert_close

from mmclca.datasets.batches import Batch
from mmclca.visualization.tsne import draw_points, image_features, tsne


@pytest.mark.parametrize('cla', [True, False])
def test_features_are_what_the_last_layer_reads(cla):
    model, x = reduced_model('EViT', CACHE, cla=cla).float(), noise(5)
    split = [Batch(x[:3], [0, 1, 2], []), Batch(x[3:], [3, 4], [])]
    features, labels = image_features(model, split)
    assert labels == [0, 1, 2, 3, 4]
    assert features.shape == (5, 32 if cla else 16)
    last = model.head.layers[-1] if cla else model.head.fc
    with torch.no_grad():
        scores = last(features[..., None] if cla else features).flatten(1)
        assert_close(scores, model(x, mode='tensor'))
        cls = model.backbone(x)[-1]
    assert_close(image_features(model, split, 'backbone')[0], cls)


def test_alike_features_are_near_each_other():
    pytest.importorskip('sklearn', reason='no scikit-learn')
    centres = 20 * torch.eye(3, 8)
    features = (centres[:, None] + torch.randn(3, 15, 8)).flatten(0, 1)
    points = tsne(features, perplexity=10, max_iter=500)
    assert points.shape == (45, 2)
    groups = points.reshape(3, 15, 2)
    middles = groups.mean(axis=1)
    width = np.linalg.norm(groups - middles[:, None], axis=-1).max()
    apart = np.linalg.norm(middles - np.roll(middles, 1, 0), axis=-1).min()
    assert apart > 1.5 * width
    again = tsne(features, perplexity=10, max_iter=500)
    assert np.array_equal(points, again)


def colours(path):
    """Which of the first two colours are in a picture."""
    picture = mmcv.imread(path).astype(int)
    found = {}
    for name, rgb in dict(a=(0, 114, 178), b=(213, 94, 0)).items():
        # drawn with opacity 0.75
        shade = 0.75 * np.array(rgb[::-1]) + 0.25 * 255
        found[name] = (abs(picture - shade).max(-1) < 3).sum()
    return found


@pytest.mark.parametrize('legend', [True, False])
def test_each_class_has_a_colour(tmp_path, legend):
    points = np.array([[0.0, 0.0], [0, 1], [1, 0], [1, 1], [0.5, 0.2]])
    out = tmp_path / 'out.png'
    draw_points(points, [0, 0, 1, 1, 1], ['x', 'y'], out, legend)
    found = colours(out)
    assert found['a'] > 50 and found['b'] > 50
    assert 1.1 < found['b'] / found['a'] < 1.9  # names cover some
    draw_points(points[:2], [0, 0], ['x', 'y'], out, legend)
    assert colours(out)['b'] == 0


def test_three_dimensions(tmp_path):
    points = np.random.default_rng(0).normal(size=(9, 3))
    draw_points(points, [0] * 9, ['x'], tmp_path / 'out.png')
    assert mmcv.imread(tmp_path / 'out.png').std() > 5
