# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""What a checkpoint may name beside tensors: logged values and settings.

mmengine's own list is not used: it has ``getattr``, with which a pickle
reaches ``os.system`` from any function.
"""

import pathlib
from argparse import Namespace
from collections.abc import Callable
from pickle import UnpicklingError

import numpy as np
from mmengine.config import ConfigDict
from mmengine.logging import HistoryBuffer


def _stand_in(module: str, name: str, function: Callable) -> Callable:
    """What is called where a pickle names ``module.name``."""

    def stand_in(*args):
        return function(*args)

    stand_in.__module__ = module
    stand_in.__name__ = stand_in.__qualname__ = name
    return stand_in


def _statistic(owner, name: str) -> Callable:
    """All that a pickled HistoryBuffer needs of ``getattr``."""
    statistics = ('min', 'max', 'current', 'mean')
    if owner is not HistoryBuffer or name not in statistics:
        raise UnpicklingError(f'GLOBAL getattr of {name}')
    return getattr(owner, name)


def _numpy_functions() -> list:
    """Rebuilding of arrays and numbers, by the names of numpy 1 and 2."""
    array = np.zeros(1).__reduce__()[0]
    number = np.float64(0).__reduce__()[0]
    modules = ('numpy.core.multiarray', 'numpy._core.multiarray')
    return [
        _stand_in(module, function.__name__, function)
        for module in modules
        for function in (array, number)
    ]


def _paths() -> list:
    """Paths become pure ones: they open on other systems too."""
    pure = dict(
        PosixPath=pathlib.PurePosixPath, WindowsPath=pathlib.PureWindowsPath
    )
    return [
        _stand_in(module, name, path)
        for module in ('pathlib', 'pathlib._local')
        for name, path in pure.items()
    ]


SAFE_GLOBALS = [
    HistoryBuffer,
    _stand_in('builtins', 'getattr', _statistic),
    np.ndarray,
    np.dtype,
    *{type(np.dtype(code)) for code in np.typecodes['All']},
    *_numpy_functions(),
    ConfigDict,
    Namespace,
    *_paths(),
]
