# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""The token sequence of a vision transformer and its state.

Shapes in this package: B batch, N tokens, C channels, H heads, D head
channels, K kept, M new tokens, P patches, G layers read by CLA.
"""

from dataclasses import dataclass, field
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from .rotary import Rotary
from .trace import (
    Appended,
    Kept,
    Masked,
    Merged,
    Unchanged,
    patch_weights,
    prepend_prefix,
    sum_into,
)


@dataclass
class Tokens:
    """The sequence [prefix | patches | registers | cached].

    Methods return a new instance or a result, and change nothing.

    Args:
        features (Tensor): Features of the tokens, (B, N, C).
        num_prefix (int): Tokens before the patches, which no reducer drops: 0;
            1 for CLS; 2 for CLS and the distillation token. Defaults to 1.
        weight (Tensor, optional): Weight of each token as a key, (B, N). None:
            equal weights. 0: ignored, in averages too.
        all_count (bool): Whether all weights are known to be above 0, which
            makes averages faster. Defaults to False.
        num_cached (int): Tokens at the end that came from the cache, CLR
            tokens included.
        num_protected (int): Tokens at the end that the next reduction keeps.
        num_pooled (int): Tokens in the average of the cache: the length after
            the last reduction.
        num_patches (int): Patches P of the image, before any reduction.
        trace (list): One record of :mod:`mmclca.models.reduction.trace` per
            step so far. ``record.apply`` applies the step to rows of numbers,
            one row per token.
        rotary (Rotary, optional): Rotary positions of the tokens. None: the
            attention has no rotary position embedding.
    """

    features: Tensor
    num_prefix: int = field(default=1, kw_only=True)
    weight: Tensor | None = None
    all_count: bool = field(default=False, kw_only=True)
    num_cached: int = 0
    num_protected: int = 0
    num_pooled: int = 0
    num_patches: int = 0
    trace: list = field(default_factory=list)
    rotary: Rotary | None = None

    @property
    def after_prefix(self) -> Tensor:
        """Features of the tokens after the prefix, (B, N - num_prefix, C)."""
        return self.features[:, self.num_prefix :]

    @property
    def patch_weights(self) -> Tensor:
        """Weights of the patches in each token, (B, N, P), float32."""
        return patch_weights(
            self.trace,
            self.features.size(0),
            self.num_patches,
            self.num_prefix,
        )

    @property
    def with_cache(self) -> bool:
        """Whether there is a cache, even without CLR tokens."""
        return any(appended.cached for appended in self.appended)

    @property
    def appended(self) -> list[Appended]:
        """Records of all tokens appended so far."""
        return [r for r in self.trace if isinstance(r, Appended)]

    @property
    def weights(self) -> Tensor:
        """``weight``, or ones if it is None, (B, N)."""
        if self.weight is None:
            return self.features.new_ones(self.features.shape[:2])
        return self.weight

    @property
    def log_weight(self) -> Tensor | None:
        """``weight`` as a bias of keys, (B, 1, 1, N), or None."""
        return (
            None if self.weight is None else self.weight.log()[:, None, None]
        )

    def replace(self, **changes: Any) -> 'Tokens':
        """Return an instance with other values of some attributes.

        With another ``weight``, ``all_count`` is False unless it is set.
        A subclass overrides this and :meth:`values`, because neither
        ``dataclasses.replace`` nor ``type(self)()`` compiles before torch 2.8.
        """
        values = self.values()
        if 'weight' in changes:
            values['all_count'] = False
        values.update(changes)
        return Tokens(**values)

    def values(self) -> dict[str, Any]:
        """Return all attributes by name."""
        return dict(
            features=self.features,
            num_prefix=self.num_prefix,
            weight=self.weight,
            all_count=self.all_count,
            num_cached=self.num_cached,
            num_protected=self.num_protected,
            num_pooled=self.num_pooled,
            num_patches=self.num_patches,
            trace=self.trace,
            rotary=self.rotary,
        )

    def with_features(self, features: Tensor) -> 'Tokens':
        """Replace the features, (B, N, C)."""
        return self.replace(features=features)

    def with_after_prefix(self, y: Tensor) -> 'Tokens':
        """Replace the features of the tokens after the prefix."""
        x = torch.cat((self.features[:, : self.num_prefix], y), dim=1)
        return self.with_features(x)

    def reduce(self, record) -> 'Tokens':
        """Apply a reduction, a record with ``apply``, and add it to ``trace``.

        With rotary positions, the record also has ``largest_members``. No
        token of the result counts as cached or protected.
        """
        weight = self.weight
        if weight is not None:
            weight = record.apply(weight.unsqueeze(-1)).squeeze(-1)
        features = record.apply(self.features)
        rotary = self.rotary
        if rotary is not None:
            batch = features.size(0)
            rotary = rotary.reduce(record, self.num_prefix, batch)
        return self.replace(
            features=features,
            weight=weight,
            rotary=rotary,
            num_cached=0,
            num_protected=0,
            num_pooled=features.size(1),
            trace=[*self.trace, record],
        )

    def gather(self, index: Tensor) -> 'Tokens':
        """Keep the tokens at ``index``, (B, K), in that order."""
        return self.reduce(Kept(index))

    def keep(self, index: Tensor) -> 'Tokens':
        """Keep the prefix and the tokens after it at ``index``, (B, K)."""
        return self.gather(prepend_prefix(index, self.num_prefix))

    def mix_after_prefix(self, mix: Tensor) -> 'Tokens':
        """Replace the tokens after the prefix by weighted sums of them.

        Args:
            mix (Tensor): Weights of M sums, (B, M, N - num_prefix).
        """
        # len() would fix the batch size of an exported model
        none = mix.new_zeros((mix.size(0), 0), dtype=torch.long)
        index = prepend_prefix(none, self.num_prefix)
        return self.reduce(Kept(index, F.pad(mix, (self.num_prefix, 0))))

    def merge(
        self,
        target: Tensor,
        num_tokens: int,
        size: Tensor | None = None,
        share: Tensor | None = None,
    ) -> 'Tokens':
        """Average tokens with the same target; ``weight`` sums their sizes.

        Args:
            target (Tensor): New token per old token, (B, N).
            num_tokens (int): New tokens.
            size (Tensor, optional): Patches per token, (B, N), 0 for a dropped
                token. Defaults to None, ``weights``.
            share (Tensor, optional): Averaging weights, (B, N). Defaults to
                None, ``size``.
        """
        all_count = size is None and (self.weight is None or self.all_count)
        size = self.weights if size is None else size
        share = size if share is None else share
        merged = self.reduce(Merged.average(target, share, num_tokens))
        size = sum_into(target, size.unsqueeze(-1), num_tokens).squeeze(-1)
        return merged.replace(weight=size, all_count=all_count)

    def merge_after_prefix(self, target: Tensor, num_tokens: int, **weights):
        """Merge tokens after the prefix, see :meth:`merge`.

        ``target`` (B, N - num_prefix) and ``num_tokens`` exclude the prefix.
        """
        targets = prepend_prefix(target, self.num_prefix)
        return self.merge(targets, self.num_prefix + num_tokens, **weights)

    def unchanged(self) -> 'Tokens':
        """Record a stage without any token to reduce."""
        return self.replace(trace=[*self.trace, Unchanged()])

    def average(self, start: int, end: int | None = None) -> Tensor:
        """Average the tokens from ``start`` to ``end``, (B, 1, C).

        Padding and tokens masked in training are ignored.
        """
        x = self.features[:, start:end]
        if self.weight is None or self.all_count:
            return x.mean(dim=1, keepdim=True)
        counts = (self.weight[:, start:end] > 0).to(x.dtype).unsqueeze(-1)
        total = counts.sum(dim=1, keepdim=True).clamp(min=1)
        return (x * counts).sum(dim=1, keepdim=True) / total

    def deviation(self, start: int) -> Tensor:
        """Compute the standard deviation from ``start`` on, (B, 1, C)."""
        centred = self.features - self.average(start)
        variance = self.with_features(centred.square()).average(start)
        # the square root has no gradient at 0, the variance of one token
        return variance.clamp(min=1e-7).sqrt()

    def mask(self, decision: Tensor) -> 'Tokens':
        """Attend only to tokens with a ``decision`` (B, N) of 1."""
        trace = [*self.trace, Masked(decision)]
        return self.replace(weight=decision, trace=trace)

    def append(
        self, x: Tensor, weight: float = 1.0, cached: bool = True
    ) -> 'Tokens':
        """Append M tokens (B, M, C), cached or not."""
        num_new = x.size(1)
        weights = self.weight
        if weights is not None or weight != 1:
            new = self.weights.new_full((x.size(0), num_new), weight)
            weights = torch.cat((self.weights, new), dim=1)
        rotary = self.rotary
        if rotary is not None:
            rotary = rotary.append(num_new)
        return self.replace(
            features=torch.cat((self.features, x), dim=1),
            weight=weights,
            all_count=weight > 0 and (self.weight is None or self.all_count),
            rotary=rotary,
            num_cached=self.num_cached + num_new * cached,
            trace=[*self.trace, Appended(num_new, cached)],
        )


def initial_tokens(tokens: Tokens) -> Tensor:
    """Return 1 for tokens from before the first stage, else 0.

    Registers and CLR tokens are 1, tokens recovered from the cache 0; (B, N -
    num_prefix).
    """
    kinds = {appended.cached for appended in tokens.appended}
    first = tokens.trace[: len(kinds)]  # registers and CLR tokens
    num_tokens = tokens.num_patches + sum(r.num_tokens for r in first)
    num_tokens += tokens.num_prefix
    rows = tokens.features.new_ones(tokens.features.size(0), num_tokens, 1)
    for record in tokens.trace[len(first) :]:
        rows = record.apply(rows)
    return rows[:, tokens.num_prefix :, 0]


def featmap(tokens: Tokens, hw: tuple[int, int]) -> Tensor:
    """Arrange tokens at their patch positions, (B, C, h, w).

    Args:
        tokens (Tokens): Remaining tokens; patches without a token are zero.
        hw (tuple[int, int]): Height and width of the patch grid.
    """
    # (B, P, N) in float32, as float16 would lose small weights
    weights = tokens.patch_weights.transpose(1, 2)
    patches = (
        F.normalize(weights, p=1, dim=-1).to(tokens.features) @ tokens.features
    )
    return patches.transpose(1, 2).unflatten(2, hw)
