# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import hashlib

import torch
from torch import Tensor


def digest_of(weights: dict[str, Tensor]) -> str:
    """Return eight hexadecimal digits that identify names and contents."""
    digest = hashlib.sha256()
    for name in sorted(weights):
        digest.update(name.encode())
        flat = weights[name].detach().contiguous().flatten()
        digest.update(flat.view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()[:8]
