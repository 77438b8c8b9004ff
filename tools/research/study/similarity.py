# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Rank correlation with the full network, per layer.

Keys are averaged over heads. A reduced token is compared with the full
network: keys and CLS attention are averaged over all patches in the token,
weighted as there.
"""

from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from frozen import DEPTH
from scipy.stats import rankdata

from mmclca.models.recording import Recorder


@dataclass
class LayerKeys:
    """Keys and CLS attention for all tokens after the prefix.

    Args:
        keys (Tensor): Mean over heads, (B, N, D).
        attention (Tensor): From CLS, mean over heads, per unit size,
            (B, N).
        patches (Tensor): Weights by token and patch, (B, N, P), 0 in
            ignored tokens; None: each token is a patch.
    """

    keys: torch.Tensor
    attention: torch.Tensor
    patches: torch.Tensor | None


class KeyRecorder(Recorder):
    """Record :class:`LayerKeys` per layer."""

    def observe(self, entered, attended, softmax, left):
        start = entered.num_prefix
        attention = attended.cls_attn()
        bias = attended.key_bias
        if bias is not None:  # log token sizes
            attention = attention / bias[:, :, 0].exp()
        patches = None
        if entered.trace:
            counted = (entered.weights > 0).unsqueeze(-1)
            patches = (entered.patch_weights * counted)[:, start:]
        self.layers.append(
            LayerKeys(
                attended.k.mean(dim=1)[:, start:],
                attention.mean(dim=1)[:, start:],
                patches,
            )
        )


def record_keys(backbone, batch):
    """Return the :class:`LayerKeys` by layer for a batch."""
    backbone.recorder = KeyRecorder()
    backbone(batch)
    layers, backbone.recorder = backbone.recorder.layers, None
    return layers


def correlate_layers(layers, full):
    """Return correlations by layer: keys and attention, (2, DEPTH).

    They are means over photos, 1 before the first reduction, and NaN if too
    few tokens are left. ``layers`` may lack the first layers.
    """
    correlations = np.ones((2, DEPTH))
    start = DEPTH - len(layers)
    for number, (layer, reference) in enumerate(
        zip(layers, full[start:], strict=True), start
    ):
        if layer.patches is None:
            continue
        pairs = np.array(
            [
                correlate_photo(layer, reference, photo)
                for photo in range(len(layer.keys))
            ]
        )
        valid = ~np.isnan(pairs)
        sums = np.where(valid, pairs, 0).sum(axis=0)
        counts = valid.sum(axis=0)
        correlations[:, number] = np.where(
            counts, sums / np.maximum(counts, 1), np.nan
        )
    return correlations


def correlate_photo(layer, full, photo):
    """Return the correlations for a photo: keys and attention."""
    patches = layer.patches[photo]
    total = patches.sum(dim=1)
    is_used = total > 0
    shares = patches[is_used] / total[is_used, None]
    keys = compare_pairs(layer.keys[photo, is_used])
    full_keys = compare_pairs(shares @ full.keys[photo])
    attention = layer.attention[photo, is_used]
    full_attention = shares @ full.attention[photo]
    return spearman(keys, full_keys), spearman(attention, full_attention)


def compare_pairs(keys):
    """Return cosine similarities for all pairs from keys (N, D)."""
    keys = F.normalize(keys, dim=-1)
    upper = torch.ones(len(keys), len(keys)).triu(1) > 0
    return (keys @ keys.T)[upper]


def spearman(values, others):
    """Return Spearman's correlation, NaN with fewer than three values."""
    if len(values) < 3:
        return np.nan
    ranks = [rankdata(x.numpy()) for x in (values, others)]
    first, second = (x - x.mean() for x in ranks)
    scale = np.sqrt((first**2).sum() * (second**2).sum())
    return (first * second).sum() / scale if scale else np.nan
