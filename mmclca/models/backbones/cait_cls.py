# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""CLS of a CaiT, and the settings that it refuses."""

from dataclasses import replace

import torch
from torch import Tensor

from ..reduction.reducers import TokenReducer
from ..reduction.tokens import Tokens
from .reducible import Reducible


def check_cls_at(
    cls_at: int | None, num_layers: int, num_class_layers: int
) -> None:
    """Refuse a CLS that would read nothing.

    Raises:
        ValueError: If there is no such layer, or no layer that reads.
    """
    if cls_at is not None and cls_at not in range(num_layers):
        raise ValueError(
            f'cls_at={cls_at!r} is no layer: give one of 0 to '
            f'{num_layers - 1}, or None for CLS after the patch layers'
        )
    if cls_at is None and num_class_layers < 1:
        raise ValueError(
            f'num_class_layers={num_class_layers!r}: CLS would read nothing, '
            'give 1 or more, or the layer at which it enters, cls_at'
        )


def check_masks(reducer: TokenReducer) -> None:
    """Refuse a reducer that leaves masked tokens behind.

    Raises:
        ValueError: If it replaces the softmax.
    """
    kind = type(reducer)
    if kind.softmax is not TokenReducer.softmax:
        raise ValueError(
            f'{kind.__name__} masks tokens in training, which talking heads '
            'and class attention would read all the same: use a reducer that '
            'leaves none behind, such as ToMe'
        )


def check_reduction(cait: Reducible) -> None:
    """Refuse a reduction that a CaiT cannot go with.

    Raises:
        ValueError: If CLS enters between the layers.
    """
    if cait.cls_at and cait.reduce_at:
        raise ValueError(
            f'cls_at={cait.cls_at} with reduce_at={cait.reduce_at}: the first '
            'tokens to be reduced would lack CLS, only cls_at=0 or None is '
            'allowed beside a reduction'
        )


class CaiTCLS:
    """Mixin over :class:`Reducible`: CLS comes late, and reads the tokens.

    After all ``layers``, in ``class_layers``, whose output is normalized by
    ``ln1``; or at the layer ``cls_at``, from which on it attends and is
    attended to as patches are: the study of Touvron's thesis (2022), table
    3.13.
    """

    may_have_position = ()
    shaped_by = 'arch, img_size, patch_size and num_class_layers'
    has_cls = True
    ranks_by_cls = False  # mixed heads have negative weights

    @property
    def no_cls(self) -> str:
        """See :class:`Reducible`."""
        if self.num_prefix:
            return 'CLS reads by heads that are mixed, which score nothing'
        return 'CLS enters a CaiT after the layers that reduce'

    def enter(self, i: int, tokens: Tokens) -> Tokens:
        """See :class:`Reducible`: CLS may join here."""
        late = i == self.cls_at and not tokens.num_prefix
        return self.with_cls(tokens) if late else tokens

    def with_cls(self, tokens: Tokens) -> Tokens:
        """CLS before the patches."""
        x = torch.cat((self.cls_of(tokens), tokens.x), dim=1)
        return replace(tokens, x=x, num_prefix=1)

    def cls_of(self, tokens: Tokens) -> Tensor:
        """CLS, (B, 1, C): of the tokens, or as it enters."""
        if tokens.num_prefix:
            return tokens.x[:, :1]
        return self.cls_token.expand(tokens.x.size(0), -1, -1)

    def format_tokens(self, tokens: Tokens, hw: tuple[int, int]) -> Tensor:
        """See :class:`Reducible`: CLS after it read the tokens, normalized."""
        return self.ln1(self.class_layers(*self._read(tokens)))[:, 0]

    def _read(self, tokens: Tokens) -> tuple[Tensor, Tensor, Tensor | None]:
        """CLS, what it reads, and the bias of these keys."""
        key_bias = self.reducer.key_bias(tokens)
        if key_bias is not None:
            key_bias = key_bias[..., tokens.num_prefix :]
        return self.cls_of(tokens), tokens.body, key_bias

    def class_attention(self, x: Tensor) -> list[Tensor]:
        """What CLS reads, (B, H, 1, 1 + N) in each class layer.

        Args:
            x (Tensor): Images (B, 3, H, W).

        Returns:
            list[Tensor]: The weights of CLS itself and of the N tokens that
            are left, which are the patches where nothing is reduced.
        """
        _, tokens = self.forward_tokens(x)
        return self.class_layers.weights(*self._read(tokens))

    def read_by_cls(
        self, images: Tensor, entered: Tokens
    ) -> tuple[Tensor, Tokens]:
        """See :class:`Reducible`: of the last class layer, if there is one."""
        if not len(self.class_layers):
            return super().read_by_cls(images, entered)
        _, tokens = self.forward_tokens(images)
        weights = self.class_layers.weights(*self._read(tokens))[-1]
        own = 1 - tokens.num_prefix  # CLS is none of the tokens
        return weights[:, :, 0, own:].float().mean(dim=1), tokens

    def check_reducer(self, reducer: TokenReducer) -> None:
        """See :class:`Reducible`; refuses those that mask, too."""
        super().check_reducer(reducer)
        check_masks(reducer)

    def check_cla(self) -> None:
        """See :class:`Reducible`: refused."""
        raise ValueError(
            'CLAHead reads CLS of several layers, of which a CaiT gives the '
            'last alone: use LinearClsHead'
        )
