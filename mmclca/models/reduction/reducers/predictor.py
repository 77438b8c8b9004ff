# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import torch
from torch import Tensor, nn

from .init import init_linear


class Predictor(nn.Module):
    """Log-probabilities of keeping and of dropping each token.

    Half of the channels look at the token, half at the average of those that
    are still kept. `DynamicViT`, section 3.2, equations 2 to 5.

    Args:
        embed_dims (int): Channels C, a multiple of 4.
    """

    def __init__(self, embed_dims: int):
        super().__init__()
        if embed_dims % 4:
            raise ValueError(
                f'embed_dims={embed_dims} must be a multiple of 4'
            )
        C = embed_dims
        self.in_conv = nn.Sequential(
            nn.LayerNorm(C), nn.Linear(C, C), nn.GELU()
        )
        self.out_conv = nn.Sequential(
            *(nn.Linear(C, C // 2), nn.GELU()),
            *(nn.Linear(C // 2, C // 4), nn.GELU()),
            *(nn.Linear(C // 4, 2), nn.LogSoftmax(dim=-1)),
        )
        init_linear(self)

    def forward(self, y: Tensor, counts: Tensor) -> Tensor:
        """Tokens (B, N, C) and whether each counts, (B, N): (B, N, 2)."""
        own, shared = self.in_conv(y).chunk(2, dim=-1)
        counts = counts.unsqueeze(-1)
        total = counts.sum(dim=1, keepdim=True).clamp(min=1)
        average = (counts * shared).sum(dim=1, keepdim=True) / total + 1e-6
        return self.out_conv(torch.cat((own, average.expand_as(own)), dim=-1))
