# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Compute digests of weights, settings and lists."""

import hashlib
import json
from collections.abc import Mapping

from torch import Tensor


def digest(content: object, weights: Mapping[str, Tensor] = {}) -> str:
    """Return sixteen hexadecimal digits for plain values and weights.

    Key order does not matter, and weights count in float32.
    """
    encoded = json.dumps(content, sort_keys=True, default=str)
    sha256 = hashlib.sha256(encoded.encode())
    for name, tensor in sorted(weights.items()):
        sha256.update(name.encode())
        sha256.update(tensor.detach().cpu().float().numpy().tobytes())
    return sha256.hexdigest()[:16]


def base_file(weights: Mapping[str, Tensor]) -> str:
    """Return the name of the file with these frozen weights."""
    return f'base_{digest("base", weights)}.pth'
