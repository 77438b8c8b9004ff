# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Heads of attention, which the shapes of weights do not tell."""

from mmengine.logging import MMLogger

from .releases import DECODER, WeightSource, name_source
from .stored import stored_backbone

# channels of the encoders of twelve heads, MAE-Lite's and MIRL's
TWELVE = (192, 384)


def heads_of_release(keys: list[str], width: int) -> int | None:
    """Count the heads of an encoder that comes with its decoders.

    Args:
        keys (list[str]): The names in the file.
        width (int): Channels of the encoder.

    Returns:
        int | None: None for others than MAE-Lite's and MIRL's small ones.
    """
    decoded = any(map(DECODER.match, keys))
    return 12 if decoded and width in TWELVE else None


def compare_heads(backbone, source: WeightSource) -> None:
    """Warn in the log of weights of another number of heads.

    Args:
        backbone (ForeignWeights): The backbone that was loaded.
        source (WeightSource): Where from.
    """
    ours = vars(backbone).get('arch_settings', {}).get('num_heads')
    theirs = _stored_heads(backbone, source) or heads_of_release(
        source.keys, backbone.embed_dims
    )
    if ours and theirs and ours != theirs:
        MMLogger.get_current_instance().warning(
            f'{source.name} is of {theirs} heads, this network has {ours}: '
            'it does not compute what was learned, give arch=dict(..., '
            f'num_heads={theirs})'
        )


def _stored_heads(backbone, source: WeightSource) -> int | None:
    weights = name_source({}, source.name)
    try:
        stored = stored_backbone(dict(meta=source.meta, state_dict=weights))
    except ValueError:  # of settings that are not read
        return None
    arch = (stored or {}).get('arch')
    if isinstance(arch, str):
        arch = backbone.arch_zoo.get(arch.lower())
    return arch.get('num_heads') if isinstance(arch, dict) else None
