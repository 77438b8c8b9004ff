# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Compute digests of weights, settings and lists."""

import hashlib
import json
from collections.abc import Mapping

import torch
from torch import Tensor


def digest_of(weights: dict[str, Tensor]) -> str:
    """Return eight hexadecimal digits for weight names and values."""
    digest = hashlib.sha256()
    for name in sorted(weights):
        digest.update(name.encode())
        flat = weights[name].detach().contiguous().flatten()
        digest.update(flat.view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()[:8]


def digest(content: object, weights: Mapping[str, Tensor] = {}) -> str:
    """Return sixteen hexadecimal digits for plain values and weights.

    Key order does not matter, and weights count in float32.
    """
    text = json.dumps(content, sort_keys=True, default=str)
    found = hashlib.sha256(text.encode())
    for name, tensor in sorted(weights.items()):
        found.update(name.encode())
        found.update(tensor.detach().cpu().float().numpy().tobytes())
    return found.hexdigest()[:16]
