# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import torch
from torch import Tensor


def at_least_float32(x: Tensor) -> Tensor:
    """Half precision to float32, which sums and exponents need."""
    return x.to(torch.promote_types(x.dtype, torch.float32))
