# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from mmclca.dependencies import check_dependencies
from mmclca.version import __version__

check_dependencies()

__all__ = ['__version__', 'fit']


def __getattr__(name: str):
    if name == 'fit':  # lazy: its import takes seconds
        from mmclca.fitting import fit

        return fit
    raise AttributeError(f'module {__name__!r} has no attribute {name!r}')
