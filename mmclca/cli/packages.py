# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Packages that take seconds to import; ``--help`` does not need them.

Every name stands for a package of mmclca, or for one of ``OTHERS``.
"""

from mmclca.utils.lazy import lazy

OTHERS = dict(np='numpy', pd='pandas') | {
    name: name for name in ('mmcv', 'mmengine', 'mmpretrain', 'rich', 'torch')
}


def __getattr__(name: str) -> lazy:
    """Return a package that is imported when a command first uses it."""
    if name.startswith('__'):  # asked for by the import system
        raise AttributeError(name)
    return lazy(OTHERS.get(name, f'mmclca.{name}'))
