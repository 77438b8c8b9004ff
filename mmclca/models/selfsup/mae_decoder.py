# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Widths of decoders that their heads and positions divide."""

from mmpretrain.models.necks import MAEPretrainDecoder
from mmpretrain.registry import MODELS

from mmclca.utils.messages import integer

SIZES = dict(decoder_num_heads=16, decoder_embed_dim=512)


def check_width(heads: int, **width: int) -> None:
    """Refuse a width, by its name, that goes with no such heads, or with no
    positions of sines and cosines."""
    integer(decoder_num_heads=heads, **width)
    ((name, channels),) = width.items()
    if channels % heads or channels % 4:
        raise ValueError(
            f'{name}={channels} is not allowed with decoder_num_heads='
            f'{heads}: give a multiple of both the heads and 4'
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
