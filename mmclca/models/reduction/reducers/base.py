# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from collections.abc import Callable, Sequence
from itertools import pairwise
from math import prod
from numbers import Real

import torch
from mmengine.logging import MMLogger
from mmengine.model import BaseModule, trunc_normal_init
from torch import Tensor, nn

from mmclca.registry import MODELS
from mmclca.utils.messages import integer

from ..attention import Attended
from ..tokens import Tokens


def init_linear(module: nn.Module) -> None:
    """Initialize linear layers as vision transformers do, in place."""
    for layer in module.modules():
        if isinstance(layer, nn.Linear):
            trunc_normal_init(layer, std=0.02)


@MODELS.register_module()
class TokenReducer(BaseModule):
    """Base of the token-reduction methods; as it stands it reduces nothing.

    A method overrides ``before`` or ``between``; both see only the layers
    that the backbone lists in ``reduce_at``, numbered as stages from 0. The
    other hooks act in every layer.

    Args:
        keep_rate (float | Sequence[float]): Share of tokens that a stage
            keeps, in (0, 1]; a number for all stages or one per stage.
            Defaults to 1.
        embed_dims (int): Channels C; the backbone fills it in.
        num_patches (int): Patches P of an image of the backbone's
            ``img_size``; the backbone fills it in.
        num_stages (int): Number of reductions; the backbone fills it in.
        num_layers (int): Layers of the backbone, which fills it in.
        reduce_at (Sequence[int], optional): Layers of the stages; the
            backbone fills it in. Defaults to None, at equal distances.
        init_cfg (dict, optional): Initialization config.

    Raises:
        ValueError: If a keep rate is outside (0, 1] or their number is not
            that of the stages.
    """

    summary = ''  # the method in one line, for people who choose one
    needs_cls_token = False  # whether it reads what CLS attends to
    can_protect = False  # whether it keeps ``tokens.num_protected``
    needs_attention = False  # whether it has an ``ahead``
    keeps_places = False  # whether tokens that it leaves are patches as before
    prop_attn = False  # whether sizes of tokens act on the attention
    needs_teacher = False  # whether its loss compares tokens with a teacher's

    def __init__(
        self,
        keep_rate: float | Sequence[float] = 1.0,
        embed_dims: int = 768,
        num_patches: int = 196,
        num_stages: int = 3,
        num_layers: int = 12,
        reduce_at: Sequence[int] | None = None,
        init_cfg=None,
    ):
        super().__init__(init_cfg)
        self.num_layers = num_layers
        self.reduce_at = reduce_at or evenly(num_stages, num_layers)
        self.keep_rate = keep_rate
        self.keep_rates = per_stage(keep_rate, num_stages)
        self.embed_dims = embed_dims
        self.num_patches = num_patches
        self.num_stages = num_stages

    @property
    def depths(self) -> list[float]:
        """Share of the layers that come before each stage."""
        return [layer / self.num_layers for layer in self.reduce_at]

    @property
    def has_loss(self) -> bool:
        """Whether a classifier has a loss to add in training."""
        return self.needs_teacher or type(self).loss is not TokenReducer.loss

    def before(self, tokens: Tokens, stage: int) -> Tokens:
        """Reduce before the layer."""
        return tokens

    def ahead(self, tokens: Tokens, attended: Attended, stage: int) -> Tokens:
        """Reduce before the layer, by the queries and keys it would have.

        Called where ``needs_attention`` is True; they are computed once more.
        """
        return tokens

    def between(
        self, tokens: Tokens, attended: Attended, stage: int
    ) -> Tokens:
        """Reduce between the attention and the FFN of the layer."""
        return tokens

    def key_bias(self, tokens: Tokens) -> Tensor | None:
        """Return the bias of the logits of each key in every layer.

        (B, 1, 1, N), the logarithms of the sizes with ``prop_attn``; None: no
        bias.
        """
        return tokens.log_weight if self.prop_attn else None

    def softmax(self, tokens: Tokens) -> Callable | None:
        """Return what makes weights of the logits of a layer, (B, H, N, N).

        None: the softmax of fused attention, which makes no such map.
        """
        return None

    def loss(self, tokens: Tokens) -> dict[str, Tensor]:
        """Compute auxiliary training losses by name, from the final tokens.

        A name holds the word 'loss', by which mmengine finds what to add up,
        and is not 'loss' itself, which is the head's.
        """
        return {}

    def token_loss(self, tokens: Tokens, teacher: Tensor) -> Tensor:
        """Compare the final tokens with a teacher's patches.

        Each token that stands for patches is compared with their average in
        the teacher, weighted as in the token: the mean squared error, over
        the tokens of an image and then over images, in as many processes as
        there are.

        Args:
            tokens (Tokens): The final tokens.
            teacher (Tensor): Patches of a teacher, (B, P, C).
        """
        with torch.no_grad():
            weights = tokens.patch_weights.to(teacher)
            total = weights.sum(dim=-1, keepdim=True)  # (B, N, 1)
            stands = (total > 0).to(teacher)
            target = weights @ teacher / total.masked_fill(total == 0, 1.0)
        error = (tokens.x - target).square().mean(dim=-1, keepdim=True)
        counts = stands.sum(dim=1).clamp(min=1)
        return ((stands * error).sum(dim=1) / counts).mean()


def check_list(name: str, values, num_stages: int, kind=object) -> None:
    """Raise if a setting is not a list with one entry of a type per stage."""
    is_list = isinstance(values, Sequence) and len(values) == num_stages
    if not (is_list and all(isinstance(x, kind) for x in values)):
        raise ValueError(
            f'{name}={values!r} must be {num_stages} values, one per stage '
            '(layer in reduce_at)'
        )


def evenly(num_stages: int, num_layers: int) -> list[int]:
    """Choose layers at equal distances, as 3, 6 and 9 of 12."""
    stages = range(1, num_stages + 1)
    return [num_layers * stage // (num_stages + 1) for stage in stages]


def per_stage(keep_rate: float | Sequence[float], num_stages: int) -> tuple:
    """Return the keep rate of each stage; raise if one is not in (0, 1]."""
    single = not isinstance(keep_rate, Sequence)
    rates = (keep_rate,) * num_stages if single else tuple(keep_rate)
    check_list('keep_rate', rates, num_stages)
    for rate in (keep_rate,) if single else rates:
        is_number = isinstance(rate, Real) and not isinstance(rate, bool)
        if not (is_number and 0 < rate <= 1):
            raise ValueError(
                f'keep_rate={keep_rate!r}: {rate!r} is not a number above 0 '
                'and at most 1'
            )
    return rates


def overall(rates: Sequence[float], stage: int) -> float:
    """Multiply keep rates to the share of patches that a stage leaves.

    Equal rates are a power: the CLCA authors' counts depend on its rounding.
    """
    rates = rates[: stage + 1]
    if len(set(rates)) == 1:
        return rates[0] ** len(rates)
    return prod(rates)


class CountedReducer(TokenReducer):
    """Base of the methods whose stages leave a share of the initial patches.

    Stage s leaves ``int(P * product of the keep rates up to s)`` of the P
    patches, at least one (where the CLCA authors' models leave none, they
    answer NaN).

    Args:
        keep_rate (float | Sequence[float], optional): See
            :class:`TokenReducer`. Defaults to None, 1 for all stages.
        num_tokens (Sequence[int], optional): In its place, the tokens that
            each stage leaves of the patches, the prefix not counted. A stage
            may leave as many as the one before. Defaults to None.
        **backbone: ``embed_dims``, ``num_patches``, ``num_stages``,
            ``num_layers``, ``reduce_at`` and ``init_cfg`` of
            :class:`TokenReducer`.

    Raises:
        ValueError: As :class:`TokenReducer`, if both are given, and if
            ``num_tokens`` has not one number per stage or asks for more
            tokens than there are.
    """

    least = 1  # tokens that a stage leaves at any keep rate

    def __init__(
        self,
        keep_rate: float | Sequence[float] | None = None,
        num_tokens: Sequence[int] | None = None,
        **backbone,
    ):
        if keep_rate is not None and num_tokens is not None:
            raise ValueError(
                f'num_tokens={num_tokens!r} and keep_rate={keep_rate!r} '
                'exclude each other; set only one'
            )
        super().__init__(1.0 if keep_rate is None else keep_rate, **backbone)
        self.num_tokens = num_tokens
        if num_tokens is not None:
            self.check_counts(num_tokens=num_tokens)

    def check_counts(self, **counts: Sequence[int]) -> None:
        """Raise unless a setting has one count per stage, none increasing."""
        for name, values in counts.items():
            check_list(name, values, self.num_stages)
            for most, count in pairwise([self.num_patches, *values]):
                integer(most=most, **{name: count})

    def count(self, stage: int, num_patches: int | None = None) -> int:
        """Count the tokens that a stage leaves of ``num_patches`` patches."""
        num_patches = num_patches or self.num_patches
        if stage < 0:
            return num_patches
        if self.num_tokens is not None:
            return min(self.num_tokens[stage], num_patches)
        return max(self.least, int(num_patches * self.share(stage)))

    def share(self, stage: int) -> float:
        """Return the share of the patches that a stage is to leave."""
        if self.num_tokens is not None:
            return self.num_tokens[stage] / self.num_patches
        return overall(self.keep_rates, stage)

    def count_for(self, tokens: Tokens, stage: int) -> int:
        """Count as ``count``, of the image that ``tokens`` came from."""
        return self.count(stage, tokens.num_patches)

    def surplus(self, tokens: Tokens, stage: int) -> int:
        """Count the tokens that a stage is to remove, patches or others.

        As many as the patches that it has to lose: tokens that a cache put
        back come on top of the count. One stays in any case.
        """
        left = self.count_for(tokens, stage)
        surplus = self.count_for(tokens, stage - 1) - left
        return max(0, min(surplus, tokens.body.size(1) - 1))


class HalvingReducer(CountedReducer):
    """Base of the methods that merge at most half of the tokens a stage."""

    least = 0  # of the patches; half of the tokens stay in any case
    prop_attn = True

    def __init__(self, *counts, **backbone):
        super().__init__(*counts, **backbone)
        counts = [self.count(s) for s in range(-1, self.num_stages)]
        if any(left < entering // 2 for entering, left in pairwise(counts)):
            MMLogger.get_current_instance().warning(
                f'{type(self).__name__} merges at most half of the tokens per '
                f'stage, so it keeps more than the requested {counts[1:]} of '
                f'{counts[0]} patches'
            )

    def num_merged(self, tokens: Tokens, stage: int) -> int:
        """Count the tokens that a stage merges into others."""
        return min(self.surplus(tokens, stage), tokens.body.size(1) // 2)
