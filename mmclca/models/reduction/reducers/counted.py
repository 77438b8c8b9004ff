# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""How many tokens a stage keeps: base classes of most methods."""

from collections.abc import Sequence
from itertools import pairwise

from mmengine.logging import MMLogger

from mmclca.errors import Error
from mmclca.utils.messages import check_integer

from ..keep_rates import check_per_stage, list_keep_rates, multiply_keep_rates
from ..tokens import Tokens
from .base import VIT_BASE, BackboneShape, TokenReducer


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
        backbone (BackboneShape): Sizes of the backbone, which sets them.
        init_cfg (dict, optional): Initialization config.

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
        *,
        backbone: BackboneShape = VIT_BASE,
        init_cfg: dict | None = None,
    ):
        if keep_rate is not None and num_tokens is not None:
            raise Error(
                f'num_tokens={num_tokens!r} and keep_rate={keep_rate!r} '
                'exclude each other; set only one'
            )
        super().__init__(
            1.0 if keep_rate is None else keep_rate, backbone, init_cfg
        )
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
        rates = list_keep_rates(keep_rate, self.num_stages)
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
        self.__dict__.update(unset | values)
        self.note_limit()

    def note_limit(self) -> None:
        """Warn if the method cannot reach the counts."""

    def check_counts(self, **counts: Sequence[int] | None) -> None:
        """Raise unless each setting has one count per stage, never rising."""
        for name, values in counts.items():
            check_per_stage(name, values, self.num_stages)
            for previous, count in pairwise(
                [self.num_patches, *(values or ())]
            ):
                check_integer(maximum=previous, **{name: count})

    def count_patches(self, stage: int, num_patches: int | None = None) -> int:
        """Return the number of patch tokens after a stage.

        Args:
            stage (int): Stage; -1 for the input of the first one.
            num_patches (int, optional): Patches of the image. Defaults to
                None, those of the backbone's image size.
        """
        num_patches = num_patches or self.num_patches
        if stage < 0:
            return num_patches
        if self.num_tokens is not None:
            return min(self.num_tokens[stage], num_patches)
        return max(self.least, int(num_patches * self.get_share(stage)))

    def get_share(self, stage: int) -> float:
        """Return the target share of patches after a stage."""
        if self.num_tokens is not None:
            return self.num_tokens[stage] / self.num_patches
        return multiply_keep_rates(self.keep_rates, stage)

    def count_left(self, tokens: Tokens, stage: int) -> int:
        """Return the patch tokens after a stage, for the image of ``tokens``.

        Cached tokens do not count.
        """
        return self.count_patches(stage, tokens.num_patches)

    def count_removed(self, tokens: Tokens, stage: int) -> int:
        """Return the number of tokens to remove, patches or others.

        It equals the patch count to remove, so tokens recovered from a cache
        do not change it. At least one token stays.
        """
        patches = self.count_left(tokens, stage - 1)
        removed = patches - self.count_left(tokens, stage)
        return max(0, min(removed, tokens.after_prefix.size(1) - 1))


class HalvingReducer(CountedReducer):
    """Base for methods that merge at most half of the tokens per stage."""

    least = 0  # half of the tokens stay at any keep rate
    prop_attn = True

    def note_limit(self) -> None:
        """Warn if more than half of the tokens would have to merge."""
        counts = [self.count_patches(s) for s in range(-1, self.num_stages)]
        if any(left < entering // 2 for entering, left in pairwise(counts)):
            MMLogger.get_current_instance().warning(
                f'{type(self).__name__} merges at most half of the tokens per '
                f'stage, so it keeps more than the requested {counts[1:]} of '
                f'{counts[0]} patches'
            )

    def count_merged(self, tokens: Tokens, stage: int) -> int:
        """Return the number of tokens that a stage merges into others."""
        return min(
            self.count_removed(tokens, stage), tokens.after_prefix.size(1) // 2
        )
