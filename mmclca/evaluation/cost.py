# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Count multiply-accumulates, parameters and tokens of a classifier."""

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field
from math import prod

import torch
from mmpretrain.models.utils import to_2tuple
from torch import nn
from torch.utils.flop_counter import FlopCounterMode, sdpa_flop_count

from mmclca.building import config_errors
from mmclca.errors import Error
from mmclca.models import LoRAModel
from mmclca.models.recording import Recorder, recording_copy
from mmclca.registry import MODELS


def _layer_norm_flops(x_shape, _, weight_shape, *__, **___) -> int:
    """Count a norm with weights over tokens; 0 for any other norm."""
    has_maps = len(x_shape) == 4  # height and width
    return 2 * prod(x_shape) * (weight_shape is not None and not has_maps)


def _distance_flops(x_shape, y_shape, *_, **__) -> int:
    return 2 * prod(x_shape) * y_shape[-2]


# operators missing in torch's counter (attention on the CPU before torch
# 2.15), in its unit: two FLOPs per multiply-accumulate
ATEN = torch.ops.aten
MORE_FLOPS = {
    ATEN.native_layer_norm: _layer_norm_flops,
    ATEN.addcmul: lambda _, x_shape, *__, **___: 2 * prod(x_shape),
    ATEN._scaled_dot_product_flash_attention_for_cpu: (
        lambda q_shape, k_shape, v_shape, *_, **__: sdpa_flop_count(
            q_shape, k_shape, v_shape
        )
    ),
}
# torch.cdist for few and for many tokens
DISTANCE_FLOPS = {
    ATEN._cdist_forward: _distance_flops,
    ATEN._euclidean_dist: _distance_flops,
}
# attention and FFN include the preceding LayerNorm, head the final one
COST_PARTS = ('embedding', 'attention', 'FFN', 'reduction', 'head')
# methods of a backbone with the cost of a part
COUNTED = dict(embed='embedding', attention_block='attention', ffn_block='FFN')


@dataclass
class Cost:
    """Cost of classifying one image.

    ``flops`` are multiply-accumulates without ``distances``; ``attended`` and
    ``tokens`` are the numbers of tokens before and after each layer.
    """

    shape: tuple[int, int]
    flops: int = 0
    params: int = 0
    parts: dict[str, int] = field(default_factory=dict)
    attended: list[int] = field(default_factory=list)
    tokens: list[int] = field(default_factory=list)
    distances: int = 0

    @property
    def gmacs(self) -> float:
        """Multiply-accumulates in 1e9."""
        return self.flops / 1e9

    def __str__(self) -> str:
        tokens = '/'.join(map(str, self.tokens))
        return f'{self.gmacs:.2f} GMACs' + f', tokens {tokens}' * bool(tokens)


class _NoModules(nullcontext):
    """Replacement for the module tracker of torch's FLOP counter.

    Only totals are needed. The tracker's gradient hooks fail if a module gets
    a view of a parameter, such as the CLS token.
    """

    parents = ('Global',)


class MacCounter(FlopCounterMode):
    """torch's FLOP counter with additional operators, for totals only."""

    def __init__(self):
        mapping = MORE_FLOPS | DISTANCE_FLOPS
        super().__init__(display=False, custom_mapping=mapping)
        self.mod_tracker = _NoModules()

    def distances(self) -> int:
        """Multiply-accumulates for distances so far."""
        counts = self.get_flop_counts().get('Global', {})
        return sum(counts.get(op, 0) for op in DISTANCE_FLOPS) // 2

    def without_distances(self) -> int:
        """Multiply-accumulates so far, except for distances."""
        return self.get_total_flops() // 2 - self.distances()


class _PartCounter:
    """Assign the running count to the parts of a model."""

    def __init__(self, counter: MacCounter, cost: Cost):
        self.counter = counter
        self.cost = cost
        self.last = 0

    def instrument(self, model: nn.Module) -> nn.Module:
        """Return a copy of a classifier that assigns its costs to parts.

        A model whose tokens cannot be recorded is returned itself.
        """
        if not hasattr(model, 'backbone'):  # such as TimmClassifier
            return model
        try:
            model = recording_copy(model)
        except Error:
            return model
        self.cost.parts.update(dict.fromkeys(COST_PARTS, 0))
        for name, part in COUNTED.items():
            method = getattr(model.backbone, name)
            setattr(model.backbone, name, self._counted(part, method))
        return model

    def _counted(self, part: str, function: Callable) -> Callable:
        """Wrap a function to assign its cost to a part."""

        def run(*inputs, **options):
            self.assign('reduction')
            output = function(*inputs, **options)
            self.assign(part)
            return output

        return run

    def assign(self, part: str) -> None:
        """Assign the cost since the last call to a part."""
        now = self.counter.without_distances()
        self.cost.parts[part] += now - self.last
        self.last = now


def count(model: nn.Module, shape: tuple[int, int] | None = None) -> Cost:
    """Count the cost of one image for a classifier in eval mode.

    The model itself is not changed. On the meta device nothing is computed.
    ``shape`` is the height and width of the image, by default the ``img_size``
    of the backbone; an Error is raised if it has no fixed size.
    """
    if shape is None:
        if not hasattr(model.backbone, 'img_size'):
            raise Error(
                f'{type(model.backbone).__name__} has no fixed image size: '
                'set `shape`=(HEIGHT, WIDTH)'
            )
        shape = to_2tuple(model.backbone.img_size)
    cost = Cost(shape)
    cost.params = sum(param.numel() for param in model.parameters())
    image = next(model.parameters()).new_zeros(1, 3, *cost.shape)
    counter = MacCounter()
    meter = _PartCounter(counter, cost)
    counted = meter.instrument(model)
    followed = counted is not model
    modes = [(module, module.training) for module in model.modules()]
    try:
        counted.eval()
        with torch.no_grad(), counter:
            counted(image)
        if followed:
            meter.assign('head')
            recorder: Recorder = counted.backbone.recorder  # type: ignore[union-attr, assignment]
            layers = recorder.layers
            cost.attended = [
                layer.entered.features.size(1) for layer in layers
            ]
            cost.tokens = [layer.left.features.size(1) for layer in layers]
    finally:
        for module, training in modes:
            module.training = training
    cost.flops = counter.without_distances()
    cost.distances = counter.distances()
    return cost


def count_config(model: dict, shape: tuple[int, int] | None = None) -> Cost:
    """Build a classifier with random weights, and count the cost of one image.

    It is built on the meta device, or on the CPU if the number of tokens
    depends on the image.
    """
    try:
        return count(_build(model, 'meta'), shape)
    except (Error, RuntimeError):  # values of meta tensors are needed
        return count(_build(model, 'cpu'), shape)


def _build(model: dict, device: str) -> nn.Module:
    with torch.device(device), config_errors():
        built = MODELS.build(model)
    return built.merged() if isinstance(built, LoRAModel) else built
