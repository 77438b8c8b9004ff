# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Pictures of a model with branches are those of the plain model it is."""

from copy import deepcopy

import numpy as np
import pytest
import torch
from small_models import CACHE, build, classifier, images, vit
from torch.testing import assert_close

from mmclca.apis.token_facts import LastLayerRecorder, token_facts
from mmclca.models import fuse
from mmclca.models.recording import recording_copy
from mmclca.visualization import class_activation_maps, rollout


@pytest.fixture
def models():
    """With branches, and with these joined."""
    reducer = dict(type='mmclca.EViT', keep_rate=0.5)
    backbone = vit(3, branches=2, reducer=reducer, reduce_at=(1,), cache=CACHE)
    model = build(classifier(backbone)).eval().double()
    return model, fuse(deepcopy(model))


@pytest.mark.parametrize('maps', [rollout, class_activation_maps])
def test_maps(models, maps):
    """Of what all attentions of a layer read."""
    x = images().double()
    one, other = (maps(model, x) for model in models)
    assert one.any()
    assert_close(one, other)


@torch.no_grad()
def test_facts_about_tokens(models):
    x, facts = images().double(), []
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
