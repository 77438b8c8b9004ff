# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from collections.abc import Sequence
from dataclasses import replace

import torch
from mmengine.model import BaseModule
from torch import Tensor, nn

from mmclca.registry import MODELS
from mmclca.utils.messages import integer

from .tokens import Tokens


@MODELS.register_module()
class CrossLayerCache(BaseModule):
    """Cross-layer cache (CLC): puts back what a reduction throws away.

    After each layer the average of the patch tokens and the CLR tokens are
    cached. After each reduction, and once before the last layer, what has
    been cached is appended to the sequence and the cache is emptied.
    `Cross-Layer Cache Aggregation for Token Reduction in Ultra-Fine-Grained
    Image Recognition`, section III-C.

    After the first recovery "the CLR tokens" are the last ``num_tokens`` of
    the sequence.

    Args:
        num_tokens (int): Cross-layer register (CLR) tokens, learned, at the
            end of the sequence. Defaults to 1.
        with_gap (bool): Whether to cache the average of the tokens.
            Defaults to True.
        recover_at_last (bool): Whether to recover before the last layer too.
            Defaults to True.
        pool_cls (bool): Whether the average covers the prefix, CLS.
            Defaults to False.
        pool_clr (bool): Whether the average covers the CLR tokens in the
            layers before the first reduction. Defaults to False.
        clr_at_cls (bool): Whether CLR tokens start at the position of CLS
            too, where loaded weights have one, instead of near none as in
            the authors' code. What that changes is told in
            docs/results/leaf40.md. Defaults to False.
        protect_clr (bool): Whether a reduction always keeps the CLR tokens,
            in place of the worst that it would keep else: with :class:`TopK`
            and :class:`EViT`. Defaults to False, as in the authors' code,
            where they are dropped as any token.
        embed_dims (int): Channels C; the backbone fills it in.
        num_layers (int): Layers of the backbone, which fills it in.
        reduce_at (Sequence[int]): Layers with a reduction; the backbone
            fills it in.
        init_cfg (dict, optional): Initialization config.

    Raises:
        ValueError: If nothing would be cached, or there is no layer to
            recover after.
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
        init_cfg=None,
    ):
        super().__init__(init_cfg)
        integer(least=int(not with_gap), num_tokens=num_tokens)
        if not reduce_at:
            raise ValueError(
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
        self.clr = self.clr_pos = None
        if num_tokens:
            shape = (1, num_tokens, embed_dims)
            self.clr = nn.Parameter(torch.zeros(shape))
            self.clr_pos = nn.Parameter(0.02 * torch.randn(shape))

    def start(self, tokens: Tokens) -> Tokens:
        """Append the CLR tokens to the embedded image."""
        num_pooled = tokens.x.size(1) + self.num_tokens * self.pool_clr
        clr = tokens.x[:, :0]
        if self.num_tokens:
            clr = (self.clr + self.clr_pos).expand(tokens.x.size(0), -1, -1)
        tokens = tokens.append(clr)  # even of none, the trace tells of it
        return self._noted(tokens, num_pooled)

    def _noted(self, tokens: Tokens, num_pooled: int) -> Tokens:
        """Note what the average covers and what is protected."""
        return replace(
            tokens, num_pooled=num_pooled, num_protected=self.num_protected
        )

    def forward(self, layer: int, tokens: Tokens, cached: list) -> Tokens:
        """Recover what is due after ``layer``, then cache its output.

        Args:
            layer (int): Index of the layer that made the tokens.
            tokens (Tokens): Output of the layer.
            cached (list[Tensor]): Entries since the last recovery, local to
                one forward pass; changed in place.
        """
        if layer in self.recover_at:
            tokens = self.recover(tokens, cached)
        if layer < self.recover_at[-1]:
            cached.extend(self.entry(tokens))
        return tokens

    def recover(self, tokens: Tokens, cached: list) -> Tokens:
        """Append the entries in the order of their layers; empty the list."""
        num_pooled = tokens.x.size(1)
        if cached:
            tokens = tokens.append(torch.cat(cached, dim=1))
        cached.clear()
        return self._noted(tokens, num_pooled)

    def entry(self, tokens: Tokens) -> list[Tensor]:
        """List what a layer leaves in the cache: average, then CLR tokens."""
        entry = []
        if self.with_gap:
            first = 0 if self.pool_cls else tokens.num_prefix
            entry.append(tokens.average(first, tokens.num_pooled))
        if self.num_tokens:
            # never the prefix, where few tokens may be left; a view would keep
            # the whole sequence in memory
            entry.append(tokens.body[:, -self.num_tokens :].clone())
        return entry
