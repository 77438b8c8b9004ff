# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import numpy as np
import pytest
import torch
from small_models import CACHE, reduced_model
from small_models import images as noise
from torch.testing import assert_close

from mmclca.datasets.batches import Batch
from mmclca.visualization.tsne import image_features, tsne


@pytest.mark.parametrize('cla', [True, False])
def test_image_features_are_the_inputs_of_the_last_layer(cla):
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


def test_tsne_separates_clusters_deterministically():
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


def test_tsne_reduces_perplexity_for_few_images(capsys):
    assert tsne(torch.randn(7, 8), perplexity=30.0).shape == (7, 2)
    assert 'perplexity reduced to 2' in capsys.readouterr().err
