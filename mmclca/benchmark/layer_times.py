# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Milliseconds of a transformer layer by number of tokens.

They predict the latency of a network without exporting it.
"""

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from mmclca.deployment import load_onnx, write_layer_to_time
from mmclca.deployment.onnx_file import LEAST_TOKENS, TOKENS
from mmclca.evaluation.cost import Cost
from mmclca.models.reduction.tokens import Tokens
from mmclca.registry import MODELS

from .latency_table import LatencyTable, hash_model
from .steps import Setting
from .timing import busy_note, repeat_passes

NUM_COUNTS = 15
# share of a layer before the reduction, its attention
ATTENTION = 0.4
# time per reduction, in layers with as many tokens and in layers with the
# fewest tokens; measured with 25 to 196 patches and this many channels, on
# which it hardly depends
REDUCTIONS = dict(ATC=(0.37, 0.89), DiffRate=(0.07, 0.36))
CHANNELS = 192
# time of a network, in the sum of its parts
NETWORK = 1.03


@dataclass(frozen=True)
class LayerTimes:
    """Milliseconds of one layer, by number of tokens.

    Args:
        counts (Sequence[int]): Numbers of tokens, ascending.
        milliseconds (Sequence[float]): Time of a layer for each of them.
        channels (int): Channels of a token. Defaults to ``CHANNELS``.
        busy (str): Note on a busy machine. Defaults to ''.
    """

    counts: Sequence[int]
    milliseconds: Sequence[float]
    channels: int = CHANNELS
    busy: str = ''

    def interpolate(self, tokens: Sequence[int]) -> np.ndarray:
        """Return the milliseconds of layers with some numbers of tokens."""
        return np.asarray(np.interp(tokens, self.counts, self.milliseconds))

    def predict(self, cost: Cost, method: str | None = None) -> float:
        """Predict the latency of a network in milliseconds.

        Embedding and head take as long per multiply-accumulate as the layers.

        Args:
            cost (Cost): Counted cost with the tokens of each layer.
            method (str, optional): A key in ``REDUCTIONS``. Defaults to None,
                no reduction.
        """
        attended, left = map(self.interpolate, (cost.attended, cost.tokens))
        layers = float(np.sum(ATTENTION * attended + (1 - ATTENTION) * left))
        parts = cost.parts
        macs = parts['attention'] + parts['FFN']
        total = layers * (1 + (parts['embedding'] + parts['head']) / macs)
        if method is not None:
            is_reduced = np.not_equal(cost.attended, cost.tokens)
            same, fewest = REDUCTIONS[method]
            reductions = same * attended + fewest * self.milliseconds[0]
            reductions *= CHANNELS / self.channels
            total += float(np.sum(reductions[is_reduced]))
        return NETWORK * total


def look_up_layer_times(backbone: dict, largest: int) -> LayerTimes:
    """Return the times of a layer in ONNX Runtime; measure unknown ones.

    Args:
        backbone (dict): Config of a ``TokenReductionViT`` with its sizes in
            ``arch``.
        largest (int): Largest number of tokens.

    Returns:
        LayerTimes: Fastest of interleaved passes, one image, all PyTorch
        threads.
    """
    config = dict(deepcopy(backbone), depth=1, out_indices=(0,))
    config |= dict(reducer=None, reduce_at=())
    same = {k: v for k, v in config.items() if k != 'img_size'}
    shares = np.arange(1, NUM_COUNTS + 1) / NUM_COUNTS
    counts = {
        max(LEAST_TOKENS, round(float(share) * largest)) for share in shares
    }
    hashes = {
        count: hash_model(dict(layer=same, tokens=dict(number=count)))
        for count in sorted(counts)
    }
    table = LatencyTable.read('onnx', 'cpu')
    times, busy = table.look_up(hashes, partial(time_layer, config))
    milliseconds = [times[count] for count in hashes]
    channels = backbone['arch']['embed_dims']
    return LayerTimes([*hashes], milliseconds, channels, busy)


def time_layer(
    backbone: dict[str, Any], counts: list[int]
) -> tuple[dict[int, float], str]:
    """Measure a layer in ONNX Runtime for some numbers of tokens.

    Each number has its own copy of the weights, so that they come from memory
    as in a network.

    Args:
        backbone (dict): Config of a ``TokenReductionViT`` with one layer.
        counts (list[int]): Numbers of tokens.

    Returns:
        tuple[dict[int, float], str]: Milliseconds by number of tokens, and a
        note if the machine is busy.
    """
    layer = FirstLayer(backbone).eval()
    setting = Setting(threads=torch.get_num_threads(), batch=1)
    steps = {}
    with TemporaryDirectory() as folder:
        path = Path(folder, 'layer.onnx')
        write_layer_to_time(layer, layer.draw_tokens(max(counts)), path)
        for count in counts:
            run = load_onnx(path, setting.threads, {TOKENS: count})
            steps[count] = partial(run, layer.draw_tokens(count))
    passes = repeat_passes(steps, setting)
    times = {count: x.milliseconds for count, x in passes.items()}
    return times, busy_note(passes)


class FirstLayer(nn.Module):
    """First layer of a backbone with random weights.

    Args:
        backbone (dict): Config of a ``TokenReductionViT``.
    """

    def __init__(self, backbone: dict):
        super().__init__()
        self.backbone = MODELS.build(backbone)

    def draw_tokens(self, count: int) -> Tensor:
        """Return random tokens (1, N, C)."""
        return torch.randn(1, count, self.backbone.embed_dims)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Map tokens (B, N, C) to tokens and to the features of the layer."""
        backbone = self.backbone
        tokens = Tokens(
            x, num_prefix=backbone.num_prefix, num_patches=x.size(1)
        )
        tokens = backbone.run_layer(backbone.layers[0], tokens, None)
        features = backbone.format_tokens(tokens, backbone.patch_resolution)
        return tokens.features, features
