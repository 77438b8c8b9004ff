# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import pytest
import torch
from small_models import CACHE, CACHES, REDUCERS, build, classifier, vit
from small_models import images as noise
from torch.testing import assert_close

from mmclca.models.tokens import patch_weights
from mmclca.visualization import class_activation_maps
from mmclca.visualization.watching import watched


def model_of(reducer, cache=None, keep_rate=0.5, **options):
    backbone = vit(
        6,
        reducer=dict(type=f'mmclca.{reducer}', keep_rate=keep_rate),
        reduce_at=(1, 3),
        cache=cache,
        **options,
    )
    return build(classifier(backbone, cla=True)).eval().double()


def slopes(model, x, layer, category, size=1e-6):
    """Of a class score in the normalized tokens, by small steps."""
    norm = model.backbone.layers[layer].ln1
    outputs = []

    def step(position):
        def change(module, inputs, output):
            output = output.clone()
            outputs.append(output.clone())
            if position is not None:
                output.view(-1)[position] += size
            return output

        handle = norm.register_forward_hook(change)
        with torch.no_grad():
            score = model(x, mode='tensor')[0, category]
        handle.remove()
        return score

    start = step(None)
    features = outputs[0]
    found = [(step(i) - start) / size for i in range(features.numel())]
    return features[0], torch.stack(found).view_as(features)[0]


@pytest.mark.parametrize('layer', [-1, 4])
def test_equals_small_steps_and_a_slow_loop(layer):
    model, x = model_of('EViT', CACHE), noise(1).double()
    (found,) = class_activation_maps(model, x, [2], layer)
    features, slope = slopes(model, x, layer, 2)
    twin = watched(model)
    with torch.no_grad():
        twin(x, mode='tensor')
    trace = twin.backbone.reducer.layers[layer].entered.trace
    (weights,) = patch_weights(trace, 1, 16).double()
    of_patches = [n for n in range(len(features)) if weights[n].any()]
    assert len(features) > 1 + len(of_patches)  # cached tokens
    alpha = sum(slope[n] for n in of_patches) / len(of_patches)
    wanted = torch.zeros(16).double()
    for n in of_patches:
        value = (alpha @ features[n]).clamp(min=0)
        for patch in range(16):
            share = weights[n, patch] / weights[n].sum()
            wanted[patch] += share * value
    assert wanted.any()
    assert_close(found.flatten(), wanted, rtol=1e-3, atol=1e-6)


def test_equals_grad_cam_where_nothing_is_reduced():
    model, x = model_of('TopK', keep_rate=1.0), noise(3).double()
    kept = []

    def keep(module, inputs, output):
        output.retain_grad()
        kept.append(output)

    handle = model.backbone.layers[-1].ln1.register_forward_hook(keep)
    model(x, mode='tensor').amax(dim=1).sum().backward()
    handle.remove()
    patches, grad = kept[0][:, 1:], kept[0].grad[:, 1:]
    wanted = (grad.mean(1, keepdim=True) * patches).sum(-1).relu()
    found = class_activation_maps(model, x)
    assert_close(found, wanted.detach().reshape(3, 4, 4))


@pytest.mark.parametrize('reducer', REDUCERS)
@pytest.mark.parametrize('cache', CACHES)
def test_every_method(reducer, cache):
    model, x = model_of(reducer, cache), noise(2).double()
    model.requires_grad_(False)
    maps = torch.stack(
        [class_activation_maps(model, x, [label] * 2) for label in range(5)]
    )
    assert maps.shape == (5, 2, 4, 4) and maps.min() >= 0
    assert maps.any()  # one may be cut off as a whole
    assert_close(class_activation_maps(model, x[1:], [4])[0], maps[4, 1])
    assert not any(p.requires_grad for p in model.parameters())


def test_dropped_patches_are_zero():
    model, x = model_of('TopK', keep_rate=0.1), noise(4).double()
    maps = class_activation_maps(model, x)
    assert (maps > 0).sum(dim=(1, 2)).max() <= 2


def test_no_gradients_are_left():
    model = model_of('EViT', CACHE, with_cp=True)
    with torch.no_grad():
        maps = class_activation_maps(model, noise(1).double())
    assert not maps.requires_grad
    assert all(p.grad is None for p in model.parameters())


@pytest.mark.parametrize('categories', [[1], [0, 5], [-1, 0]])
def test_categories_that_are_not_allowed(categories):
    with pytest.raises(ValueError, match='a class for each, 0 to 4'):
        class_activation_maps(model_of('TopK'), noise(2).double(), categories)


def test_layer_that_is_not_there():
    with pytest.raises(ValueError, match='layer=6 is not there.*0 to 5'):
        class_activation_maps(model_of('TopK'), noise().double(), layer=6)
