# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Names of foreign checkpoints, and what of a checkpoint fits a model."""

import re
from itertools import islice

from mmengine.logging import MMLogger

from .checkpoint_error import CheckpointError

# timm, the DeiT release and the CLCA authors' release to this package. The
# first rule that matches a key applies; a key that none matches is kept.
RENAMES = (
    (r'(cls_token|pos_embed)$', r'backbone.\1'),
    (r'patch_embed\.proj\.', 'backbone.patch_embed.projection.'),
    (r'norm_pre\.', 'backbone.pre_norm.'),
    (r'blocks\.(\d+)\.norm([12])\.', r'backbone.layers.\1.ln\2.'),
    (r'blocks\.(\d+)\.attn\.', r'backbone.layers.\1.attn.'),
    (r'blocks\.(\d+)\.mlp\.fc1\.', r'backbone.layers.\1.ffn.layers.0.0.'),
    (r'blocks\.(\d+)\.mlp\.fc2\.', r'backbone.layers.\1.ffn.layers.1.'),
    (
        r'blocks\.(\d+)\.(ls1\.gamma|gamma_1)$',
        r'backbone.layers.\1.attn.gamma1.weight',
    ),
    (
        r'blocks\.(\d+)\.(ls2\.gamma|gamma_2)$',
        r'backbone.layers.\1.ffn.gamma2.weight',
    ),
    (r'norm\.', 'backbone.ln1.'),
    (r'clr$', 'backbone.cache.clr'),
    (r'ifa_head\.0\.', 'head.layers.'),
    (r'head\.', 'head.layers.head.'),
)
FOREIGN = re.compile(r'blocks\.\d+\.|patch_embed\.proj\.')
MAY_BE_NEW = ('cache.', 'reducer.', 'ln1.', 'ln2.')


def rename_to_classifier(state_dict: dict, prefix: str) -> None:
    """Give foreign keys under ``prefix`` the names of a classifier, in place.

    A linear ``head`` beside the CLA head of the CLCA authors is dead weight
    and is left out.
    """
    keys = [key for key in state_dict if key.startswith(prefix)]
    names = {key: key[len(prefix) :] for key in keys}
    if not any(FOREIGN.match(name) for name in names.values()):
        return
    dead = any(name.startswith('ifa_head.') for name in names.values())
    for key, name in names.items():
        value = state_dict.pop(key)
        if not (dead and name.startswith('head.')):
            state_dict[prefix + _rename(name)] = value


def _rename(name: str) -> str:
    for pattern, new in RENAMES:
        if re.match(pattern, name):
            return re.sub(pattern, new, name, count=1)
    return name


def rename_to_backbone(state_dict: dict, prefix: str) -> None:
    """As :func:`rename_to_classifier`, for a backbone alone, in place.

    Of the file of a classifier only the backbone is left.
    """
    rename_to_classifier(state_dict, prefix)
    own = f'{prefix}backbone.'
    if not any(key.startswith(own) for key in state_dict):
        return
    for key in [key for key in state_dict if key.startswith(prefix)]:
        value = state_dict.pop(key)
        if key.startswith(own):
            state_dict[prefix + key[len(own) :]] = value


def fill_backbone(backbone, state_dict: dict, prefix: str, source: str):
    """As :func:`fill`, for a backbone, where little may be new.

    The CLR tokens, the reducer and the last norms may be; everything else
    must be there with its shape.

    Raises:
        CheckpointError: If it is not; names the file and its first keys.
    """
    keys = [key for key in state_dict if key.startswith(prefix)]
    unfit = _unfit(backbone, state_dict, prefix)
    wrong = {k: v for k, v in unfit.items() if not k.startswith(MAY_BE_NEW)}
    if wrong:
        listed = [f'{name} {why}' for name, why in wrong.items()]
        raise CheckpointError(
            f'{source} does not fit {type(backbone).__name__} ('
            f'{backbone.embed_dims} channels, {backbone.num_layers} layers): '
            f'{len(wrong)} parameters are missing or of another shape: '
            f'{_first(listed)}. The first keys of the file: {_first(keys)}. '
            'Is it the right file, and the right arch?'
        )
    fill(backbone, state_dict, prefix, source)


def _unfit(module, state_dict: dict, prefix: str) -> dict:
    """Parameters that a state dict lacks or has in another shape, and why."""
    unfit = {}
    for name, value in module.state_dict().items():
        came = state_dict.get(prefix + name)
        if came is None:
            unfit[name] = 'missing'
        elif came.shape != value.shape:
            unfit[name] = f'{tuple(came.shape)}, not {tuple(value.shape)}'
    return unfit


def fill(module, state_dict: dict, prefix: str, source: str) -> None:
    """Make a state dict fit a module exactly, in place.

    What the file lacks, or has with another shape, keeps the module's own
    values and is reported as new; what the module has no place for is left
    out and reported.
    """
    own = module.state_dict()
    keys = [key for key in state_dict if key.startswith(prefix)]
    unused = [key for key in keys if key[len(prefix) :] not in own]
    for key in unused:
        del state_dict[key]
    new = _unfit(module, state_dict, prefix)
    for name in new:
        state_dict[prefix + name] = own[name]
    logger = MMLogger.get_current_instance()
    if new:
        names = [prefix + name for name in new]
        logger.info(f'{source}: new parameters, not loaded: {_first(names)}')
    if unused:
        logger.info(f'{source}: left out, not used here: {_first(unused)}')


def _first(names: list, count: int = 6) -> str:
    more = f' and {len(names) - count} more' if len(names) > count else ''
    return ', '.join(islice(names, count)) + more
