# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Unpickle untrusted checkpoints.

Pickles may contain tensors, logged values and plain settings. The allow list
of mmengine is not used: its ``getattr`` gives access to ``os.system``. The
classes of numpy are not allowed either: arrays and dtypes restore their state
unchecked, so a file could turn bytes into object pointers. Stand-ins record
the state instead, and arrays are built from it after validation.
"""

import pathlib
import re
from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from pickle import UnpicklingError

import numpy as np
from mmengine.config import ConfigDict
from mmengine.logging import HistoryBuffer
from torch import _weights_only_unpickler

# dtypes: bool, int, uint, float, bytes and str, with at most four digits
PLAIN = re.compile(r'[biufSU][1-9]\d{0,3}')


class _Kind:
    """Stand-in for a plain, little-endian dtype that validates its state."""

    def __init__(self, code: str, *_):
        if not PLAIN.fullmatch(code):
            raise UnpicklingError(f'GLOBAL numpy.dtype({code!r:.20})')
        self.dtype = np.dtype(code)

    def __setstate__(self, state: tuple):
        _, order, *parts = state
        if order not in ('<', '|') or any(x is not None for x in parts[:3]):
            raise UnpicklingError('GLOBAL numpy.dtype')


class _Array:
    """Stand-in for an array that validates its state."""

    def __init__(self, *_):
        self.numbers = None

    def __setstate__(self, state: tuple):
        _, shape, dtype, by_column, data = state
        self.numbers = _numbers(dtype, shape, data, 'CF'[bool(by_column)])

    def __reduce__(self):  # copied and saved as an array
        return self.numbers.__reduce__()

    def tolist(self) -> list:
        """Return the values as nested lists."""
        return self.numbers.tolist()


class _History(HistoryBuffer):
    """Stand-in for a history, which becomes a ``HistoryBuffer``."""

    def __setstate__(self, state: dict):
        logs, counts = (
            np.array(state[name].numbers, float)
            for name in ('_log_history', '_count_history')
        )
        self.__init__(logs, counts, state['max_length'])
        self.__class__ = HistoryBuffer


def _scalar(dtype: _Kind, data: bytes) -> np.generic:
    return _numbers(dtype, (1,), data)[0]


def _numbers(
    dtype: _Kind, shape: tuple, data: bytes, order: str = 'C'
) -> np.ndarray:
    """Return a new array from bytes, after validation."""
    plain_shape = all(type(n) is int and n >= 0 for n in shape)
    if type(data) is not bytes or not plain_shape:
        raise UnpicklingError('an array has no plain values or shape')
    if dtype.dtype.kind == 'U':
        data.decode('utf-32-le')  # raises if invalid
    values = np.frombuffer(data, dtype.dtype)
    return values.reshape(shape, order=order).copy()  # raises if they differ


def _statistic(owner: type, name: str) -> None:
    """Replace ``getattr``; a ``HistoryBuffer`` does not need its result."""
    if owner is not _History or name not in ('min', 'max', 'current', 'mean'):
        raise UnpicklingError('GLOBAL getattr')


def _encoded(string: str, codec: str) -> bytes:
    """Replace ``codecs.encode``; other codecs could inflate the data."""
    if codec not in ('latin1', 'latin-1'):
        raise UnpicklingError(f'GLOBAL _codecs.encode({codec!r:.20})')
    return string.encode(codec)


def _byte_array(data: bytes | str = b'', codec: str = 'latin-1') -> bytearray:
    """Replace ``bytearray``, which could allocate any size."""
    if isinstance(data, int):
        raise UnpicklingError('GLOBAL bytearray')
    return bytearray(_encoded(data, codec) if isinstance(data, str) else data)


# functions allowed by torch, with limits
_BOUNDED = {'_codecs.encode': _encoded, 'builtins.bytearray': _byte_array}
# constructors of arrays and scalars in numpy 1 and 2
_NUMPY = {
    f'{module}.{name}': note
    for module in ('numpy.core.multiarray', 'numpy._core.multiarray')
    for note, name in ((_Array, '_reconstruct'), (_scalar, 'scalar'))
}
# pure paths, which can be created on any platform
_PATHS = {
    f'{module}.{path.__name__.removeprefix("Pure")}': path
    for module in ('pathlib', 'pathlib._local')
    for path in (pathlib.PurePosixPath, pathlib.PureWindowsPath)
}
# allowed names in pickles, and what stands for them
_SAFE = {
    'mmengine.logging.history_buffer.HistoryBuffer': _History,
    'builtins.getattr': _statistic,
    'numpy.ndarray': None,  # only passed through, never called
    'numpy.dtype': _Kind,
    'mmengine.config.config.ConfigDict': ConfigDict,
    'argparse.Namespace': Namespace,
}
_SAFE |= _NUMPY | _PATHS


@contextmanager
def only_safe_globals() -> Iterator[None]:
    """Limit unpickling to tensors and ``_SAFE``, within a context.

    Other libraries add to torch's safe names, so these are replaced. Its
    public functions do not take names before torch 2.6, and torch 2.4 allows
    none of ``_BOUNDED``.
    """
    allowed = _weights_only_unpickler._get_allowed_globals()
    before = dict(allowed)
    get_added = _weights_only_unpickler._get_user_allowed_globals
    allowed.update(_BOUNDED)
    _weights_only_unpickler._get_user_allowed_globals = lambda: _SAFE
    try:
        yield
    finally:
        _weights_only_unpickler._get_user_allowed_globals = get_added
        allowed.clear()
        allowed.update(before)
