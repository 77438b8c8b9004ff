# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from collections.abc import Sequence

from ..tokens import Tokens
from .base import TokenReducer, overall


class CountedReducer(TokenReducer):
    """Base of the methods whose stages leave a share of the initial patches.

    Stage s leaves ``int(P * product of the keep rates up to s)`` of the P
    patches, at least one (where the CLCA authors' models leave none, they
    answer NaN).

    Args:
        keep_rate (float | Sequence[float]): See :class:`TokenReducer`.
        num_tokens (Sequence[int], optional): Tokens that each stage leaves
            of the patches, in place of the keep rate. Defaults to None.
        **backbone: What the backbone fills in, and ``init_cfg``; see
            :class:`TokenReducer`.

    Raises:
        ValueError: As :class:`TokenReducer`, and if ``num_tokens`` has not
            one number per stage or asks for more tokens than there are.
    """

    least = 1  # tokens that a stage leaves at any keep rate

    def __init__(
        self,
        keep_rate: float | Sequence[float] = 1.0,
        num_tokens: Sequence[int] | None = None,
        **backbone,
    ):
        super().__init__(keep_rate, **backbone)
        self.num_tokens = num_tokens
        if num_tokens is not None:
            _check(num_tokens, self.num_patches, self.num_stages)

    def count(self, stage: int, num_patches: int | None = None) -> int:
        """Tokens that a stage leaves of ``num_patches`` patches.

        Args:
            stage (int): The stage; -1 is before the first one.
            num_patches (int, optional): Patches of the image. Defaults to
                None, those of the backbone's ``img_size``.
        """
        num_patches = num_patches or self.num_patches
        if stage < 0:
            return num_patches
        if self.num_tokens is not None:
            return min(self.num_tokens[stage], num_patches)
        return max(self.least, int(num_patches * self.share(stage)))

    def share(self, stage: int) -> float:
        """Share of the patches that a stage is to leave."""
        if self.num_tokens is not None:
            return self.num_tokens[stage] / self.num_patches
        return overall(self.keep_rates, stage)

    def count_for(self, tokens: Tokens, stage: int) -> int:
        """As ``count``, of the image that ``tokens`` came from."""
        return self.count(stage, tokens.num_patches)


def _check(num_tokens, num_patches: int, num_stages: int) -> None:
    is_list = isinstance(num_tokens, Sequence)
    if not is_list or len(num_tokens) != num_stages:
        raise ValueError(
            f'num_tokens={num_tokens!r} must be {num_stages} numbers, one '
            'for each stage (layer in reduce_at)'
        )
    available = num_patches
    for count in num_tokens:
        if type(count) is not int or not 1 <= count <= available:
            raise ValueError(
                f'num_tokens={num_tokens!r}: {count!r} is not allowed, a '
                f'stage leaves at least 1 and at most the {available} tokens '
                'that the one before it leaves of the patches'
            )
        available = count
