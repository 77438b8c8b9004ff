# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from functools import partial
from itertools import cycle

import pytest
import torch
from small_models import CACHE, CACHES, REDUCERS, reduced_model
from small_models import images as noise
from torch.testing import assert_close

from mmclca.models.recording import recording_copy
from mmclca.models.reduction.trace import patch_weights
from mmclca.visualization import class_activation_maps
from mmclca.visualization.cam import (
    CAM_METHODS,
    EIGEN_METHODS,
    EPS,
    first_component,
    smoothed_maps,
)

model_of = partial(reduced_model, cla=True)


def slopes(model, x, layer, category, size=1e-6):
    """Gradient of a class score by finite differences."""
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


@pytest.mark.slow
def test_maps_equal_finite_differences(layer=4):
    model, x = model_of('EViT', CACHE), noise(1).double()
    (found,) = class_activation_maps(model, x, [2], layer)
    features, slope = slopes(model, x, layer, 2)
    copied = recording_copy(model)
    with torch.no_grad():
        copied(x, mode='tensor')
    trace = copied.backbone.recorder.layers[layer].entered.trace
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


@pytest.mark.parametrize('reducer, cache', [*zip(REDUCERS, cycle(CACHES))])
def test_maps_of_every_reducer_depend_on_the_image_only(reducer, cache):
    model, x = model_of(reducer, cache), noise(2).double()
    model.requires_grad_(False)
    maps = torch.stack(
        [class_activation_maps(model, x, [label] * 2) for label in range(5)]
    )
    assert maps.shape == (5, 2, 4, 4) and maps.min() >= 0
    assert maps.any()  # single maps can be zero
    assert_close(class_activation_maps(model, x[1:], [4])[0], maps[4, 1])
    assert not any(p.requires_grad for p in model.parameters())


def test_dropped_patches_are_zero_and_no_gradients_are_left():
    model, x = model_of('TopK', keep_rate=0.1, with_cp=True), noise(4).double()
    with torch.no_grad():
        maps = class_activation_maps(model, x)
    assert (maps > 0).sum(dim=(1, 2)).max() <= 2
    assert not maps.requires_grad
    assert all(p.grad is None for p in model.parameters())


def by_channel(method, x, grad):
    """Contribution of each channel for one image, (N, C)."""
    parts = torch.zeros_like(x)
    for c in range(x.size(1)):
        a, g = x[:, c], grad[:, c]
        share = g**2 / (2 * g**2 + a.sum() * g**3 + EPS)
        weights = {
            'gradcam': g.mean(),
            'gradcam++': (share * g.clamp(min=0)).sum(),
            'xgradcam': a @ g / (a.sum() + EPS),
            'layercam': g.clamp(min=0),
            'eigencam': 1,
        }
        parts[:, c] = weights.get(method, g) * a
    return parts


@pytest.mark.parametrize('method', CAM_METHODS)
def test_methods_equal_a_loop_over_channels(method):
    x, grad = torch.randn(2, 2, 7, 3).double()
    stands = torch.tensor([1, 1, 0, 1, 1, 1, 0]).double().view(1, 7, 1)
    number = stands.sum(dim=1, keepdim=True)
    found = CAM_METHODS[method](stands * x, stands * grad, number)
    for image in range(2):
        rows = stands[0, :, 0] > 0
        wanted = by_channel(method, x[image, rows], grad[image, rows])
        assert_close(found[image, rows], wanted)
        assert not found[image, ~rows].any()


def test_first_component_equals_the_covariance_eigenvector():
    parts = torch.randn(2, 9, 4).double()
    stands = torch.ones(1, 9, 1).double()
    stands[:, 3] = 0
    found = first_component(parts, stands)
    for image in range(2):
        rows = parts[image, stands[0, :, 0] > 0]
        rows = rows - rows.mean(dim=0)
        axis = torch.linalg.eigh(rows.T @ rows).eigenvectors[:, -1]
        wanted = rows @ axis
        wanted = wanted * torch.sign((wanted * rows.sum(dim=1)).sum())
        assert_close(found[image, stands[0, :, 0] > 0, 0], wanted)
    assert not found[:, 3].any()


@pytest.mark.parametrize('method', ['GradCAM', 'eigencam'])
def test_eigen_smooth_changes_all_but_eigen_methods(method):
    model, x = model_of('EViT', CACHE), noise(2).double()
    look = partial(class_activation_maps, model, x, [1, 2], method=method)
    maps, smooth = look(), look(eigen_smooth=True)
    assert maps.shape == (2, 4, 4) and maps.min() >= 0 and maps.max() > 0
    assert torch.equal(smooth, maps) == (method in EIGEN_METHODS)


def test_smoothed_maps_of_a_mirrored_image_are_mirrored():
    model, x = model_of('EViT'), noise(1).double()
    maps = smoothed_maps(model, x, categories=[1])
    other = smoothed_maps(model, x.flip(-1), categories=[1])
    assert maps.any() and torch.allclose(maps, other.flip(-1))


@pytest.mark.parametrize(
    'options, term',
    [
        (dict(categories=[1]), '0 to 4'),
        (dict(categories=[0, 5]), '0 to 4'),
        (dict(categories=[-1, 0]), '0 to 4'),
        (dict(method='cam'), 'layercam'),
        (dict(layer=12), 'layer'),
    ],
)
def test_maps_refuse_invalid_options(options, term):
    with pytest.raises(ValueError, match=term):
        class_activation_maps(model_of('TopK'), noise(2).double(), **options)
