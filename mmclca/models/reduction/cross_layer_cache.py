# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from collections.abc import Sequence
from typing import Any

import torch
from mmengine.model import BaseModule
from torch import Tensor, nn

from mmclca.errors import Error
from mmclca.registry import MODELS
from mmclca.utils.messages import check_integer

from .tokens import Tokens


@MODELS.register_module()
class CrossLayerCache(BaseModule):
    """Cross-layer cache (CLC): restores information lost in a reduction.

    After each layer, the average of the patch tokens and the CLR tokens are
    cached. After each reduction, and once before the last layer, the cached
    tokens are appended to the sequence and the cache is emptied. `Cross-Layer
    Cache Aggregation for Token Reduction in Ultra-Fine-Grained Image
    Recognition`, section III-C.

    After the first recovery, "the CLR tokens" are the last ``num_tokens``
    tokens of the sequence.

    Args:
        num_tokens (int): Learned cross-layer register (CLR) tokens at the end
            of the sequence. Defaults to 1.
        with_gap (bool): Whether to cache the token average. Defaults to True.
        recover_at_last (bool): Whether to recover before the last layer, too.
            Defaults to True.
        pool_cls (bool): Whether the average includes the prefix, CLS. Defaults
            to False.
        pool_clr (bool): Whether the average includes the CLR tokens in the
            layers before the first reduction. Defaults to False.
        clr_at_cls (bool): Whether CLR tokens start at the position embedding
            of CLS, if loaded weights have one, and not close to zero as in the
            authors' code. docs/results/leaf40.md compares both. Defaults to
            False.
        protect_clr (bool): Whether a reduction always keeps the CLR tokens, in
            place of the lowest-scoring kept tokens; for :class:`TopK` and
            :class:`EViT`. Defaults to False, as in the authors' code, which
            may drop them.
        embed_dims (int): Channels C; set by the backbone.
        num_layers (int): Backbone layers; set by the backbone.
        reduce_at (Sequence[int]): Layers with a reduction; set by the
            backbone.
        init_cfg (dict, optional): Initialization config.

    Raises:
        Error: If there is nothing to cache, or no reduction.
    """

    def __init__(
        self,
        num_tokens: int = 1,
        with_gap: bool = True,
        recover_at_last: bool = True,
        pool_cls: bool = False,
        pool_clr: bool = False,
        clr_at_cls: bool = False,
        protect_clr: bool = False,
        embed_dims: int = 768,
        num_layers: int = 12,
        reduce_at: Sequence[int] = (3, 6, 9),
        init_cfg: dict | None = None,
    ):
        super().__init__(init_cfg)
        check_integer(minimum=int(not with_gap), num_tokens=num_tokens)
        if not reduce_at:
            raise Error(
                f'a cache with reduce_at={tuple(reduce_at)} is never used; '
                'set reduce_at of the backbone, for example to (3, 6, 9)'
            )
        self.num_tokens = num_tokens
        self.with_gap = with_gap
        self.pool_cls = pool_cls
        self.pool_clr = pool_clr
        self.clr_at_cls = clr_at_cls
        self.num_protected = num_tokens * protect_clr
        last = {num_layers - 2} if recover_at_last else set()
        self.recover_at = sorted(last.union(reduce_at))
        self.clr: Any = None
        self.clr_pos: Any = None
        if num_tokens:
            shape = (1, num_tokens, embed_dims)
            self.clr = nn.Parameter(torch.zeros(shape))
            self.clr_pos = nn.Parameter(0.02 * torch.randn(shape))

    def start_at(
        self, cls_token: Tensor, cls_pos: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """Return CLR tokens and positions that start at a loaded CLS token.

        Args:
            cls_token (Tensor): The CLS token (1, 1, C).
            cls_pos (Tensor, optional): Positions of the tokens before the
                patches, CLS first, (1, n, C); None if they are unknown.

        Returns:
            tuple[Tensor, Tensor]: Copies of CLS, and the present random
            positions; zero if CLS has none. With ``clr_at_cls``, the position
            of CLS is added.
        """
        pos = self.clr_pos.detach()
        if cls_pos is not None and not cls_pos.size(1):
            pos = torch.zeros_like(pos)
        elif cls_pos is not None and self.clr_at_cls:
            pos = pos + cls_pos[:, :1].to(pos)
        return cls_token.repeat(1, self.num_tokens, 1), pos

    def start(self, tokens: Tokens) -> Tokens:
        """Append the CLR tokens to the embedded image."""
        num_pooled = tokens.features.size(1) + self.num_tokens * self.pool_clr
        clr = tokens.features[:, :0]
        if self.num_tokens:
            clr = (self.clr + self.clr_pos).expand(
                tokens.features.size(0), -1, -1
            )
        tokens = tokens.append(clr)  # even 0 tokens, to mark the trace
        return self._with_counts(tokens, num_pooled)

    def _with_counts(self, tokens: Tokens, num_pooled: int) -> Tokens:
        """Set the number of pooled and protected tokens."""
        return tokens.replace(
            num_pooled=num_pooled, num_protected=self.num_protected
        )

    def forward(self, layer: int, tokens: Tokens, cached: list) -> Tokens:
        """Recover after ``layer`` if due, then cache its output.

        Args:
            layer (int): Layer index of the tokens.
            tokens (Tokens): Output of the layer.
            cached (list[Tensor]): Entries since the last recovery in this
                forward pass; changed in place.
        """
        if layer in self.recover_at:
            tokens = self.recover(tokens, cached)
        if layer < self.recover_at[-1]:
            cached.extend(self.entry(tokens))
        return tokens

    def recover(self, tokens: Tokens, cached: list) -> Tokens:
        """Append the cached entries in layer order, and empty the list."""
        num_pooled = tokens.features.size(1)
        if cached:
            tokens = tokens.append(torch.cat(cached, dim=1))
        cached.clear()
        return self._with_counts(tokens, num_pooled)

    def entry(self, tokens: Tokens) -> list[Tensor]:
        """Return the cache entry of a layer: average, then CLR tokens."""
        entry = []
        if self.with_gap:
            first = 0 if self.pool_cls else tokens.num_prefix
            entry.append(tokens.average(first, tokens.num_pooled))
        if self.num_tokens:
            # slice after the prefix, as it is not cached; clone, as a view
            # would keep the whole sequence in memory
            entry.append(tokens.after_prefix[:, -self.num_tokens :].clone())
        return entry
