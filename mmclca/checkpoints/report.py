# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Compare the weights of a file with a model, and report what was loaded."""

from dataclasses import dataclass, field

from mmengine.logging import MMLogger
from torch import Tensor

from mmclca.utils.terminal import printable


@dataclass
class Report:
    """The answer of a load, by names of the model."""

    source: str
    loaded: list[str] = field(default_factory=list)
    new: list[str] = field(default_factory=list)
    unused: list[str] = field(default_factory=list)
    resized: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        parts = {
            'resized': self.resized,
            'new, not loaded': _by_part(self.new),
            'not used here': _by_part(self.unused),
        }
        said = [f'{what}: {first(of)}' for what, of in parts.items() if of]
        loaded = f'{self.source}: {len(self.loaded)} tensors loaded'
        return printable('; '.join([loaded, *said]))

    def log(self) -> None:
        """Write it into mmengine's log."""
        MMLogger.get_current_instance().info(str(self))


def _by_part(names: list[str]) -> list[str]:
    """Names in which those of the same part of a model are one."""
    parts = {}
    for name in names:
        parts.setdefault('.'.join(name.split('.')[:2]), []).append(name)
    return [
        found[0] if len(found) == 1 else f'{part}.* ({len(found)})'
        for part, found in parts.items()
    ]


def first(names: list[str], count: int = 6) -> str:
    """The first of some names, and how many more there are."""
    more = f' and {len(names) - count} more' if len(names) > count else ''
    return (', '.join(names[:count]) or 'none') + more


# tokens of others, which a backbone without them does not need
MAY_BE_LEFT = ('cls_token', 'mask_token')


def compare_weights(
    own: dict, weights: dict, prefix: str = ''
) -> tuple[dict, list]:
    """Find the parameters of a module that do not come, and what is unused.

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
    """Name what makes weights those of another backbone.

    Args:
        backbone (ForeignWeights): Says what may be new, and what left.
        unfit (dict): Of :func:`compare_weights`.
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
