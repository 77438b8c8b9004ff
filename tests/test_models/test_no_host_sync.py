# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Forward passes do not synchronize with the GPU, as CUDA graphs require.

Fake tensors stand in for a GPU: reading a value fails, and tensors on the
CPU are detected.
"""

import pytest
import torch
from process_state import compiling
from small_models import CACHE, REDUCERS, classifier, images, vit
from torch._subclasses import FakeTensorMode
from torch._subclasses.fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
)
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from mmclca.registry import MODELS


class OnlyOnGpu(TorchDispatchMode):
    """Refuse operations with inputs or outputs on the CPU."""

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        out = function(*args, **(kwargs or {}))
        for leaf in tree_leaves((args, kwargs, out)):
            if isinstance(leaf, torch.Tensor):
                assert leaf.device.type == 'cuda', f'{function} on the CPU'
        return out


@pytest.fixture
def gpu():
    """Mode of fake tensors."""
    mode = FakeTensorMode()
    try:
        with mode, torch.device('cuda'):
            torch.empty(1).uniform_()
    except RuntimeError as error:  # early versions of torch ask the driver
        pytest.skip(f'no GPU for fake tensors: {error}'.splitlines()[0])
    return mode


def model_and_images(gpu, name, train):
    backbone = vit(
        num_layers=3,
        reduce_at=(0, 1),
        reducer=dict(type=f'mmclca.{name}', keep_rate=0.5),
        cache=CACHE,
        drop_rate=0.1,
        drop_path_rate=0.1,
    )
    config = classifier(backbone, cla=True)
    with gpu, torch.device('cuda'):
        return MODELS.build(config).train(train), images()


def forward(model, x):
    """Class scores and auxiliary losses."""
    feats, tokens = model.backbone.forward_tokens(x)
    return model.head(feats), model.backbone.reducer.loss(tokens)


# the CPU evaluates the loop condition of a compiled ATC
LOOPLESS = [name for name in REDUCERS if name != 'ATC']


@pytest.mark.parametrize(
    'name, train', [*((name, True) for name in LOOPLESS), ('ATS', False)]
)
@pytest.mark.slow
def test_compiled_forward_does_not_synchronize(gpu, name, train):
    model, x = model_and_images(gpu, name, train)
    with compiling(), gpu, OnlyOnGpu():
        scores, losses = forward(model, x)
    assert scores.shape == (2, 5) and scores.is_cuda
    assert len(losses) == (name == 'DynamicViT' and train)


@pytest.mark.slow
def test_eager_forward_synchronizes_only_in_atc_and_ats(gpu):
    found = []
    for name in REDUCERS:
        model, x = model_and_images(gpu, name, train=False)
        try:
            with gpu, OnlyOnGpu():
                forward(model, x)
        except DataDependentOutputException:
            found.append(name)
    assert found == ['ATC', 'ATS']


FORBIDDEN = (
    (lambda x: x.sum().item(), DataDependentOutputException),
    (lambda x: x[x > 0], DynamicOutputShapeException),
    (lambda x: x.cpu(), AssertionError),
    (lambda x: torch.tensor([1.0, 2.0], device=x.device), AssertionError),
)


@pytest.mark.parametrize('function, error', FORBIDDEN)
def test_planted_synchronization_is_detected(gpu, function, error):
    model, x = model_and_images(gpu, 'EViT', train=False)

    def plant(layer, inputs, out):
        function(out)

    model.backbone.layers[1].ln1.register_forward_hook(plant)
    with pytest.raises(error), gpu, OnlyOnGpu():
        forward(model, x)
