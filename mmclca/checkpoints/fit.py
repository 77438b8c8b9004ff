# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""What of a checkpoint fits a model."""

from mmengine.logging import MMLogger
from torch import Tensor

from .error import CheckpointError
from .positions import explain_rows

# in a backbone; everything else decides what the model computes
MAY_BE_NEW = ('cache.', 'reducer.', 'ln1.', 'ln2.')
MAY_BE_LEFT = (*MAY_BE_NEW, 'cls_token', 'mask_token', 'decoder_')


def check_backbone(backbone, state_dict: dict, prefix: str, metadata: dict):
    """Refuse a state dict whose backbone is not this one.

    The CLR tokens, the reducer and the last norms may be new or be left out.

    Args:
        backbone (TokenReductionViT): The backbone that is to be loaded.
        state_dict (dict): With the names and positions of the backbone.
        prefix (str): What the names begin with.
        metadata (dict): What torch hands to load hooks, with the
            :class:`Source` of the weights under ``'source'``.

    Raises:
        CheckpointError: If parameters are missing, of another shape or would
            be left out; names the file and its first keys.
    """
    own, source = backbone.state_dict(), metadata['source']
    unfit = _unfit(own, state_dict, prefix)
    if 'pos_embed' in unfit:
        unfit['pos_embed'] += explain_rows(backbone, state_dict, prefix)
    wrong = [
        f'{name} {why}'
        for name, why in unfit.items()
        if not name.startswith(MAY_BE_NEW)
    ]
    wrong += [
        f'{name} has no place'
        for name in _unused(own, state_dict, prefix)
        if not name.startswith(MAY_BE_LEFT)
    ]
    if wrong:
        raise CheckpointError(
            f'{source.name} does not fit {type(backbone).__name__} '
            f'({backbone.embed_dims} channels, {backbone.num_layers} layers): '
            f'{len(wrong)} parameters are wrong: {_first(wrong)}. '
            f'The first keys of the file: {_first(source.keys)}. '
            'Is it the right file, and are arch, img_size and patch_size '
            'those of its model?'
        )


def fill(own: dict, state_dict: dict, prefix: str, metadata: dict) -> None:
    """Make a state dict fit parameters exactly, in place.

    What the file lacks, or has with another shape, keeps its own values and
    is reported as new; what has no place is left out and reported.

    Args:
        own (dict): The parameters and buffers of a module, by name.
        state_dict (dict): What was loaded; all that begins with ``prefix``
            is for the module.
        prefix (str): See there.
        metadata (dict): See :func:`check_backbone`.
    """
    unused = [prefix + name for name in _unused(own, state_dict, prefix)]
    new = [prefix + name for name in _unfit(own, state_dict, prefix)]
    for key in unused:
        del state_dict[key]
    for key in new:
        state_dict[key] = own[key[len(prefix) :]]
    logger, source = MMLogger.get_current_instance(), metadata['source']
    if new:
        logger.info(f'{source.name}: new, not loaded: {_first(new)}')
    if unused:
        logger.info(f'{source.name}: not used here: {_first(unused)}')


def fill_around_backbone(
    classifier, state_dict: dict, prefix: str, metadata: dict
) -> None:
    """As :func:`fill`, for a classifier but for its backbone, in place."""
    own = classifier.state_dict()
    own = {k: v for k, v in own.items() if not k.startswith('backbone.')}
    inner = [key for key in state_dict if key.startswith(f'{prefix}backbone.')]
    backbone = {key: state_dict.pop(key) for key in inner}
    fill(own, state_dict, prefix, metadata)
    state_dict.update(backbone)


def _unfit(own: dict, state_dict: dict, prefix: str) -> dict:
    """What a state dict lacks or has in another shape, and why."""
    unfit = {}
    for name, value in own.items():
        came = state_dict.get(prefix + name)
        if not isinstance(came, Tensor):
            unfit[name] = 'is missing'
        elif came.shape != value.shape:
            unfit[name] = f'is {tuple(came.shape)}, not {tuple(value.shape)}'
    return unfit


def _unused(own: dict, state_dict: dict, prefix: str) -> list[str]:
    keys = [key for key in state_dict if key.startswith(prefix)]
    names = [key[len(prefix) :] for key in keys]
    return [name for name in names if name not in own]


def _first(names: list[str], count: int = 6) -> str:
    more = f' and {len(names) - count} more' if len(names) > count else ''
    return (', '.join(names[:count]) or 'none') + more
