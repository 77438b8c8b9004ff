# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""What a vision transformer gives of the tokens that leave a layer."""

import torch
from mmpretrain.models.backbones import VisionTransformer
from torch import Tensor

from ..reduction.tokens import Tokens, featmap


def _average(vit: VisionTransformer, tokens: Tokens, hw) -> Tensor:
    return tokens.average(vit.num_prefix)[:, 0]


def _avg_featmap(vit: VisionTransformer, tokens: Tokens, hw) -> Tensor:
    return vit.ln2(_average(vit, tokens, hw))


def _cls_average(vit: VisionTransformer, tokens: Tokens, hw) -> Tensor:
    return torch.cat((tokens.x[:, 0], _average(vit, tokens, hw)), -1)


def _cls_token(vit: VisionTransformer, tokens: Tokens, hw) -> Tensor:
    # a view would keep the whole sequence in memory
    return tokens.x[:, 0].clone()


def _prefix(vit: VisionTransformer, tokens: Tokens, hw) -> Tensor:
    return tokens.x[:, : vit.num_prefix].clone()


def _raw(vit: VisionTransformer, tokens: Tokens, hw) -> Tensor:
    return tokens.x


def _featmap(vit: VisionTransformer, tokens: Tokens, hw) -> Tensor:
    if tokens.trace:
        return featmap(tokens, hw)
    return vit._format_output(tokens.x, hw)


# by ``out_type``: of a backbone, its tokens (B, N, C) and the grid (h, w)
OUTPUT_FORMS = dict(
    raw=_raw,
    cls_token=_cls_token,
    prefix=_prefix,
    average=_average,
    cls_average=_cls_average,
    avg_featmap=_avg_featmap,
    featmap=_featmap,
)


def check_prefix(vit: VisionTransformer, dist_token: bool) -> None:
    """Refuse an output, or a distillation token, without the CLS token.

    Raises:
        ValueError: If there is none, and ``out_type`` has it or
            ``dist_token`` follows it.
    """
    if vit.num_prefix:
        return
    if dist_token:
        raise ValueError(
            'dist_token=True puts the distillation token after CLS: '
            'with_cls_token=False is not allowed, leave it out'
        )
    if vit.out_type in ('cls_average', 'prefix'):
        raise ValueError(
            f'out_type={vit.out_type!r} needs a CLS token: '
            "with_cls_token=False goes with 'average'"
        )


def check_cla(vit: VisionTransformer) -> None:
    """Refuse settings with which a CLA head would not read raw CLS.

    Raises:
        ValueError: If outputs do not begin with CLS, or are normalized.
    """
    if vit.out_type not in ('cls_token', 'prefix'):
        raise ValueError(
            f'CLAHead reads CLS tokens: out_type={vit.out_type!r} is not '
            "allowed in the backbone, only 'cls_token' (or 'prefix')"
        )
    if vit.final_norm:
        raise ValueError(
            'CLAHead reads CLS tokens without the final LayerNorm: set '
            'final_norm=False in the backbone (it is True)'
        )
