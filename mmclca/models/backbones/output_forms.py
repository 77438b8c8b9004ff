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
    average=_average,
    cls_average=_cls_average,
    avg_featmap=_avg_featmap,
    featmap=_featmap,
)


def check_cla(vit: VisionTransformer) -> None:
    """Refuse settings with which a CLA head would not read raw CLS.

    Raises:
        ValueError: If outputs are no CLS tokens, or normalized.
    """
    if vit.out_type != 'cls_token':
        raise ValueError(
            f'CLAHead reads CLS tokens: out_type={vit.out_type!r} is not '
            "allowed in the backbone, only 'cls_token'"
        )
    if vit.final_norm:
        raise ValueError(
            'CLAHead reads CLS tokens without the final LayerNorm: set '
            'final_norm=False in the backbone (it is True)'
        )
