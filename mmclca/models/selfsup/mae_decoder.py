# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Widths of decoders that their heads and positions divide."""

from mmpretrain.models.necks import MAEPretrainDecoder
from mmpretrain.registry import MODELS

from mmclca.utils.messages import integer

SIZES = dict(decoder_num_heads=16, decoder_embed_dim=512)


def check_width(heads: int, **width: int) -> None:
    """Refuse a dimension that is not divisible by the heads and by 4.

    Sine-cosine position embeddings need a multiple of 4.
    """
    integer(decoder_num_heads=heads, **width)
    ((name, channels),) = width.items()
    if channels % heads or channels % 4:
        raise ValueError(
            f'{name}={channels} is not divisible by decoder_num_heads={heads} '
            'and by 4; choose a multiple of both'
        )


# in the place of its parent: ``MAE`` builds its decoder from that registry
@MODELS.register_module('MAEPretrainDecoder', force=True)
class CheckedMAEDecoder(MAEPretrainDecoder):
    """mmpretrain's ``MAEPretrainDecoder``, which fails with the first batch
    if its heads do not fit; this one where it is built.

    Args:
        **options: Arguments of ``MAEPretrainDecoder``.

    Raises:
        ValueError: If the heads, or 4, do not divide the channels.
    """

    def __init__(self, **options):
        options = SIZES | options
        heads, width = (options[name] for name in SIZES)
        check_width(heads, decoder_embed_dim=width)
        super().__init__(**options)
