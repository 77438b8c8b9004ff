# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Packages that take seconds to import; ``--help`` does not need them.

Each name is a package in mmclca, or a key of ``OTHERS``.
"""

from mmclca.utils.lazy import lazy

OTHERS = dict(np='numpy') | {
    name: name for name in ('mmcv', 'mmengine', 'mmpretrain', 'rich', 'torch')
}


def __getattr__(name: str) -> lazy:
    """Return a package that is imported at first use."""
    if name.startswith('__'):  # requested by the import system
        raise AttributeError(name)
    return lazy(OTHERS.get(name, f'mmclca.{name}'))
