# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""No forward makes the CPU wait for the GPU, which CUDA graphs forbid.

The GPU is one of shapes only, so that none is needed: a value that is asked
for is not there, and a tensor on the CPU is seen.
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


class OnlyOnTheGpu(TorchDispatchMode):
    """Refuses every operation that reads or makes a tensor on the CPU."""

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        out = function(*args, **(kwargs or {}))
        for leaf in tree_leaves((args, kwargs, out)):
            if isinstance(leaf, torch.Tensor):
                assert leaf.device.type == 'cuda', f'{function} on the CPU'
        return out


@pytest.fixture
def gpu():
    """A GPU of shapes only."""
    return FakeTensorMode()


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
    """Class scores, and the auxiliary losses."""
    feats, tokens = model.backbone.forward_tokens(x)
    return model.head(feats), model.backbone.reducer.loss(tokens)


# a compiled ATC has a loop, of which the CPU asks whether it goes on
LOOPLESS = [name for name in REDUCERS if name != 'ATC']


@pytest.mark.parametrize(
    'name, train', [*((name, True) for name in LOOPLESS), ('ATS', False)]
)
@pytest.mark.slow
def test_forward_in_a_compiled_model(gpu, name, train):
    """The next test has all others in evaluation."""
    model, x = model_and_images(gpu, name, train)
    with compiling(), gpu, OnlyOnTheGpu():
        scores, losses = forward(model, x)
    assert scores.shape == (2, 5) and scores.is_cuda
    assert len(losses) == (name == 'DynamicViT' and train)


@pytest.mark.slow
def test_atc_and_ats_ask_for_values_where_they_are_not_compiled(gpu):
    asking = []
    for name in REDUCERS:
        model, x = model_and_images(gpu, name, train=False)
        try:
            with gpu, OnlyOnTheGpu():
                forward(model, x)
        except DataDependentOutputException:
            asking.append(name)
    assert asking == ['ATC', 'ATS']


FORBIDDEN = (
    (lambda x: x.sum().item(), DataDependentOutputException),
    (lambda x: bool((x > 0).any()), DataDependentOutputException),
    (lambda x: range(x.long().sum()), DataDependentOutputException),
    (lambda x: x[x > 0], DynamicOutputShapeException),
    (lambda x: x.unique(), DynamicOutputShapeException),
    (lambda x: x.cpu(), AssertionError),
    (lambda x: torch.arange(3).to(x.device), AssertionError),
    (lambda x: torch.tensor([1.0, 2.0], device=x.device), AssertionError),
)


@pytest.mark.parametrize('function, error', FORBIDDEN)
def test_what_is_forbidden_would_be_seen(gpu, function, error):
    """Planted in the layer of a model that passes."""
    model, x = model_and_images(gpu, 'EViT', train=False)

    def plant(layer, inputs, out):
        function(out)

    model.backbone.layers[1].ln1.register_forward_hook(plant)
    with pytest.raises(error), gpu, OnlyOnTheGpu():
        forward(model, x)
