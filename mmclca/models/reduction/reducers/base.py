# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from collections.abc import Callable, Sequence
from inspect import Parameter, signature
from itertools import pairwise
from math import prod

import torch
from mmengine.logging import MMLogger
from mmengine.model import BaseModule, TruncNormalInit
from torch import Tensor

from mmclca.errors import Error
from mmclca.registry import MODELS
from mmclca.utils.messages import check_integer, check_number

from ..attention import Attended
from ..tokens import Tokens

# initializes linear layers of a module as in vision transformers, in place
init_linear = TruncNormalInit(std=0.02, layer='Linear')


@MODELS.register_module()
class TokenReducer(BaseModule):
    """Base class for token-reduction methods, which itself reduces nothing.

    A method overrides ``before_layer`` or ``after_attention``. Both are called
    only in the layers that the backbone lists in ``reduce_at``, numbered as
    stages from 0. The other hooks are called in every layer.

    Args:
        keep_rate (float | Sequence[float]): Share of tokens kept per stage, in
            (0, 1]; one number, or one per stage. Defaults to 1.
        embed_dims (int): Channels C; set by the backbone.
        num_patches (int): Patches P of an image of size ``img_size``; set by
            the backbone.
        num_stages (int): Stages; set by the backbone.
        num_layers (int): Backbone layers; set by the backbone.
        reduce_at (Sequence[int], optional): Layers of the stages; set by the
            backbone. Defaults to None, evenly spaced.
        init_cfg (dict, optional): Initialization config.

    Raises:
        Error: If a keep rate is outside (0, 1], or there is not one per
            stage.
    """

    summary = ''  # one line that helps users to choose a method
    needs_cls_token = False  # whether it uses CLS attention
    can_protect = False  # whether it supports protected tokens
    needs_attention = False  # whether it overrides ``before_attention``
    keeps_places = False  # whether remaining tokens are original patches
    prop_attn = False  # whether token sizes bias the attention
    num_tokens = None  # counts per stage that replace the keep rate
    # settings that count tokens in place of ``keep_rate``
    count_settings: tuple[str, ...] = ()
    needs_teacher = False  # whether its loss needs a teacher's tokens

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
        self.embed_dims = embed_dims
        self.num_patches = num_patches
        self.num_stages = num_stages
        self.keep_rate = keep_rate

    @property
    def keep_rate(self) -> float | Sequence[float]:
        """Keep rate, or one per stage; changes take effect at once."""
        return self._keep_rate

    @keep_rate.setter
    def keep_rate(self, keep_rate: float | Sequence[float]) -> None:
        if type(self) is TokenReducer and '_keep_rate' in vars(self):
            raise Error(
                f'keep_rate={keep_rate!r} has no effect without a method; '
                "build the model with one, such as method='ToMe'"
            )
        self.keep_rates = per_stage(keep_rate, self.num_stages)
        self._keep_rate = keep_rate

    def extra_repr(self) -> str:
        """Show the layers with a reduction, and keep rates or counts."""
        if type(self) is TokenReducer:
            return ''
        values = {name: getattr(self, name) for name in self.count_settings}
        values = {k: v for k, v in values.items() if v is not None}
        values = values or dict(keep_rate=self.keep_rate)
        values['layers'] = self.layers
        return ', '.join(f'{name}={value}' for name, value in values.items())

    @property
    def layers(self) -> tuple[int, ...]:
        """Layers with a reduction, from 0; fixed when the model is built."""
        return tuple(self.reduce_at)

    @layers.setter
    def layers(self, layers: object) -> None:
        raise Error(
            f'layers={layers!r}: the layers of a built model cannot change; '
            'reduce the original model again, with these layers'
        )

    @property
    def depths(self) -> list[float]:
        """Share of the layers before each stage."""
        return [layer / self.num_layers for layer in self.reduce_at]

    @property
    def has_loss(self) -> bool:
        """Whether there is an auxiliary training loss."""
        return self.needs_teacher or type(self).loss is not TokenReducer.loss

    def before_layer(self, tokens: Tokens, stage: int) -> Tokens:
        """Reduce tokens before the layer."""
        return tokens

    def before_attention(
        self, tokens: Tokens, attended: Attended, stage: int
    ) -> Tokens:
        """Reduce tokens before the attention, by its queries and keys.

        Called if ``needs_attention`` is True; queries and keys are computed
        twice.
        """
        return tokens

    def after_attention(
        self, tokens: Tokens, attended: Attended, stage: int
    ) -> Tokens:
        """Reduce tokens between the attention and the FFN of the layer."""
        return tokens

    def key_bias(self, tokens: Tokens) -> Tensor | None:
        """Return a bias (B, 1, 1, N) of the logits per key, in every layer.

        With ``prop_attn``, it is the log sizes. None: no bias.
        """
        return tokens.log_weight if self.prop_attn else None

    def softmax(self, tokens: Tokens) -> Callable | None:
        """Return a function from logits (B, H, N, N) to weights in a layer.

        None: the softmax of fused attention, which avoids such a map.
        """
        return None

    def loss(self, tokens: Tokens) -> dict[str, Tensor]:
        """Compute auxiliary training losses by name from the final tokens.

        Names must contain 'loss', as mmengine sums these losses, and must
        differ from 'loss', the loss of the head.
        """
        return {}

    def token_loss(self, tokens: Tokens, teacher: Tensor) -> Tensor:
        """Compare the final tokens with the patch tokens of a teacher.

        The target of a token is the average of its patches in the teacher,
        weighted as in the token. The mean squared error is averaged over the
        tokens of an image, then over images, so it does not depend on the
        number of processes.

        Args:
            tokens (Tokens): Final tokens.
            teacher (Tensor): Patch tokens of a teacher, (B, P, C).
        """
        with torch.no_grad():
            weights = tokens.patch_weights.to(teacher)
            total = weights.sum(dim=-1, keepdim=True)  # (B, N, 1)
            stands = (total > 0).to(teacher)
            target = weights @ teacher / total.masked_fill(total == 0, 1.0)
        error = (tokens.features - target).square().mean(dim=-1, keepdim=True)
        counts = stands.sum(dim=1).clamp(min=1)
        return ((stands * error).sum(dim=1) / counts).mean()


def check_list(name: str, values, num_stages: int, kind=object) -> None:
    """Raise unless a setting is a list with one typed entry per stage."""
    is_list = isinstance(values, Sequence) and len(values) == num_stages
    if not (is_list and all(isinstance(x, kind) for x in values)):
        raise Error(
            f'{name}={values!r} must be {num_stages} values, one per stage '
            '(layer with a reduction)'
        )


def evenly(num_stages: int, num_layers: int) -> list[int]:
    """Return evenly spaced layers, such as 3, 6 and 9 of 12."""
    stages = range(1, num_stages + 1)
    return [num_layers * stage // (num_stages + 1) for stage in stages]


def per_stage(keep_rate: float | Sequence[float], num_stages: int) -> tuple:
    """Return the keep rate of each stage; raise unless all are in (0, 1]."""
    # a text is a sequence, too
    single = isinstance(keep_rate, str) or not isinstance(keep_rate, Sequence)
    rates = (keep_rate,) * num_stages if single else tuple(keep_rate)
    check_list('keep_rate', rates, num_stages)
    for rate in (keep_rate,) if single else rates:
        check_number(least=1e-6, most=1, keep_rate=rate)
    return rates


def list_settings(kind: type[TokenReducer]) -> list[str]:
    """Return the settings of a method, without those of the backbone."""
    names: dict[str, None] = {}
    for base in kind.__mro__:
        parameters = signature(base.__init__).parameters
        names |= {
            name: None
            for name, parameter in parameters.items()
            if parameter.kind is Parameter.POSITIONAL_OR_KEYWORD
            or parameter.kind is Parameter.KEYWORD_ONLY
        }
        kinds = {parameter.kind for parameter in parameters.values()}
        if base is TokenReducer or Parameter.VAR_KEYWORD not in kinds:
            break
    backbone = {*signature(TokenReducer.__init__).parameters} - {'keep_rate'}
    return [name for name in names if name not in backbone]


def overall(rates: Sequence[float], stage: int) -> float:
    """Multiply keep rates up to a stage.

    Equal rates use a power, as the CLCA authors' counts depend on rounding.
    """
    rates = rates[: stage + 1]
    if len(set(rates)) == 1:
        return rates[0] ** len(rates)
    return prod(rates)


class CountedReducer(TokenReducer):
    """Base class for methods whose stages keep a share of the initial patches.

    Stage s keeps ``int(P * product of the keep rates up to s)`` of the P
    patches, at least one (the CLCA authors' models return NaN if none is
    left).

    Args:
        keep_rate (float | Sequence[float], optional): See
            :class:`TokenReducer`. Defaults to None, 1 for all stages.
        num_tokens (Sequence[int], optional): Remaining patch tokens per stage,
            without the prefix; replaces ``keep_rate``. Must not increase.
            Defaults to None.
        **backbone: ``embed_dims``, ``num_patches``, ``num_stages``,
            ``num_layers``, ``reduce_at`` and ``init_cfg`` of
            :class:`TokenReducer`.

    Raises:
        Error: As :class:`TokenReducer`, if both are given, or if
            ``num_tokens`` is not one number per stage, or increases.
    """

    least = 1  # minimum number of tokens after a stage
    count_settings = ('num_tokens',)
    # why counts cannot change if ``stages`` has parameters
    fixed = ''

    def __init__(
        self,
        keep_rate: float | Sequence[float] | None = None,
        num_tokens: Sequence[int] | None = None,
        **backbone,
    ):
        if keep_rate is not None and num_tokens is not None:
            raise Error(
                f'num_tokens={num_tokens!r} and keep_rate={keep_rate!r} '
                'exclude each other; set only one'
            )
        super().__init__(1.0 if keep_rate is None else keep_rate, **backbone)
        if num_tokens is not None:
            self.num_tokens = num_tokens

    @property
    def keep_rate(self) -> float | Sequence[float]:
        """Keep rate, or one per stage.

        A new rate takes effect at once, and replaces other counts.

        Raises:
            Error: If it is not allowed, or parameters of the method have
                the shape of its counts.
        """
        return self._keep_rate

    @keep_rate.setter
    def keep_rate(self, keep_rate: float | Sequence[float]) -> None:
        rates = per_stage(keep_rate, self.num_stages)
        self._replace_counts(_keep_rate=keep_rate, keep_rates=rates)

    @property
    def num_tokens(self) -> Sequence[int] | None:
        """Remaining patches per stage, or None; see ``keep_rate``."""
        return self._num_tokens

    @num_tokens.setter
    def num_tokens(self, num_tokens: Sequence[int]) -> None:
        self.check_counts(num_tokens=num_tokens)
        self._replace_counts(_num_tokens=num_tokens)

    def _replace_counts(self, **values) -> None:
        if self.fixed and 'stages' in self._modules:
            name = type(self).__name__
            raise Error(
                f'the counts of {name} cannot change: it {self.fixed}; build '
                'another model with the new keep_rate or num_tokens'
            )
        unset = dict.fromkeys(self.count_settings)
        unset['_num_tokens'] = unset.pop('num_tokens')  # behind a property
        vars(self).update(unset | values)
        self.note_limit()

    def note_limit(self) -> None:
        """Warn if the method cannot reach the counts."""

    def check_counts(self, **counts: Sequence[int]) -> None:
        """Raise unless each setting has one count per stage, never rising."""
        for name, values in counts.items():
            check_list(name, values, self.num_stages)
            for most, count in pairwise([self.num_patches, *values]):
                check_integer(most=most, **{name: count})

    def count(self, stage: int, num_patches: int | None = None) -> int:
        """Return the number of tokens after a stage, from ``num_patches``."""
        num_patches = num_patches or self.num_patches
        if stage < 0:
            return num_patches
        if self.num_tokens is not None:
            return min(self.num_tokens[stage], num_patches)
        return max(self.least, int(num_patches * self.share(stage)))

    def share(self, stage: int) -> float:
        """Return the target share of patches after a stage."""
        if self.num_tokens is not None:
            return self.num_tokens[stage] / self.num_patches
        return overall(self.keep_rates, stage)

    def count_for(self, tokens: Tokens, stage: int) -> int:
        """Return the count after a stage, for the image of ``tokens``."""
        return self.count(stage, tokens.num_patches)

    def surplus(self, tokens: Tokens, stage: int) -> int:
        """Return the number of tokens to remove, patches or others.

        It equals the patch count to remove, so tokens recovered from a cache
        do not change it. At least one token stays.
        """
        left = self.count_for(tokens, stage)
        surplus = self.count_for(tokens, stage - 1) - left
        return max(0, min(surplus, tokens.after_prefix.size(1) - 1))


class HalvingReducer(CountedReducer):
    """Base for methods that merge at most half of the tokens per stage."""

    least = 0  # half of the tokens stay at any keep rate
    prop_attn = True

    def note_limit(self) -> None:
        """Warn if more than half of the tokens would have to merge."""
        counts = [self.count(s) for s in range(-1, self.num_stages)]
        if any(left < entering // 2 for entering, left in pairwise(counts)):
            MMLogger.get_current_instance().warning(
                f'{type(self).__name__} merges at most half of the tokens per '
                f'stage, so it keeps more than the requested {counts[1:]} of '
                f'{counts[0]} patches'
            )

    def num_merged(self, tokens: Tokens, stage: int) -> int:
        """Return the number of tokens that a stage merges into others."""
        return min(
            self.surplus(tokens, stage), tokens.after_prefix.size(1) // 2
        )
