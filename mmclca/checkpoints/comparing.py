# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Whether the weights of a file are those of a model: names and shapes."""

from torch import Tensor

# tokens of others, which a backbone without them does not need
MAY_BE_LEFT = ('cls_token', 'mask_token')


def compare(own: dict, weights: dict, prefix: str = '') -> tuple[dict, list]:
    """Which parameters of a module do not come, and why; what is unused.

    Args:
        own (dict): State dict of the module.
        weights (dict): Weights by the names of the module.
        prefix (str): What precedes these. Defaults to ''.

    Returns:
        tuple[dict, list]: What is wrong, in words, by the name of the
        parameter, and the names that the module has not.
    """
    unfit = {}
    for name, value in own.items():
        came = weights.get(prefix + name)
        if not isinstance(came, Tensor):
            unfit[name] = 'is missing'
        elif came.shape != value.shape:
            unfit[name] = f'is {tuple(came.shape)}, not {tuple(value.shape)}'
    keys = [key for key in weights if key.startswith(prefix)]
    names = [key[len(prefix) :] for key in keys]
    return unfit, [name for name in names if name not in own]


def wrong_parameters(backbone, unfit: dict, unused: list) -> list[str]:
    """What makes weights those of another backbone, in words.

    Args:
        backbone (ForeignWeights): Says what may be new, and what left.
        unfit (dict): Of :func:`compare`.
        unused (list): Likewise.
    """
    may_be_new = backbone.may_be_new
    may_be_left = (*may_be_new, *backbone.may_be_left, *MAY_BE_LEFT)
    wrong = [
        f'{name} {why}'
        for name, why in unfit.items()
        if not name.startswith(may_be_new)
    ]
    return wrong + [
        f'{name} has no place'
        for name in unused
        if not name.startswith(may_be_left)
    ]
