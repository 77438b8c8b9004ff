# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Run networks with a reducer from the first reduction on.

All layers before it have equal outputs in the full network, so these are
computed once. This saves a third to three quarters.
"""

from math import prod

import torch

from mmclca.models.reduction.tokens import Tokens

NUM_EARLY = 3  # layers before the first reduction


def record_early(backbone):
    """Return a list that gets the tokens (B, N, C) before the reductions.

    Each forward pass appends to it.
    """
    run_layer, last = backbone.run_layer, backbone.layers[NUM_EARLY - 1]
    outputs = []

    def run(layer, tokens, stage):
        tokens = run_layer(layer, tokens, stage)
        if layer is last:
            outputs.append(tokens.features.numpy().copy())
        return tokens

    backbone.run_layer = run
    return outputs


def skip_early(backbone):
    """Let a backbone start after its early layers."""
    run_layer, early = backbone.run_layer, [*backbone.layers[:NUM_EARLY]]
    patches = prod(backbone.patch_resolution)

    def run(layer, tokens, stage):
        is_early = any(layer is x for x in early)
        return tokens if is_early else run_layer(layer, tokens, stage)

    def embed(features):
        tokens = Tokens(
            features, num_prefix=backbone.num_prefix, num_patches=patches
        )
        return tokens, backbone.patch_resolution

    backbone.run_layer, backbone.embed = run, embed


def is_equal_after(model, images, tokens, skipping):
    """Return whether skipped layers leave all later features unchanged.

    Args:
        model (nn.Module): Network.
        images (Tensor): Its input.
        tokens (Tensor): Output after the early layers.
        skipping (nn.Module): The same network after :func:`skip_early`.
    """
    torch.manual_seed(0)
    whole = model.backbone(images)[NUM_EARLY:]
    torch.manual_seed(0)
    later = skipping.backbone(tokens)[NUM_EARLY:]
    pairs = zip(whole, later, strict=True)
    return all(torch.equal(x, y) for x, y in pairs)
