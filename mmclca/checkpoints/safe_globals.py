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


def _statistic(owner, name: str) -> Callable:
    """All that a pickled HistoryBuffer needs of ``getattr``."""
    statistics = ('min', 'max', 'current', 'mean')
    if owner is not HistoryBuffer or name not in statistics:
        raise UnpicklingError(f'GLOBAL getattr of {name}')
    return getattr(owner, name)


# rebuilding of arrays and numbers, by the names of numpy 1 and 2
_NUMPY = [
    (function, f'{module}.{function.__name__}')
    for module in ('numpy.core.multiarray', 'numpy._core.multiarray')
    for function in (
        np.zeros(1).__reduce__()[0],
        np.float64(0).__reduce__()[0],
    )
]
# paths become pure ones: they open on other systems too
_PATHS = [
    (path, f'{module}.{path.__name__.removeprefix("Pure")}')
    for module in ('pathlib', 'pathlib._local')
    for path in (pathlib.PurePosixPath, pathlib.PureWindowsPath)
]
# what a pickle may name; pairs are what it gets, and what it names
SAFE_GLOBALS = [
    HistoryBuffer,
    (_statistic, 'builtins.getattr'),
    np.ndarray,
    np.dtype,
    *{type(np.dtype(code)) for code in np.typecodes['All']},
    *_NUMPY,
    ConfigDict,
    Namespace,
    *_PATHS,
]
