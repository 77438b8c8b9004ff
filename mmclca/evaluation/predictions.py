# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Predictions written by ``tools/test.py --out``."""

import io
import pickle
from os import PathLike
from pathlib import Path

import torch

from mmclca.errors import Error

# functions that such files need in addition to plain values
_ALLOWED = {
    ('_codecs', 'encode'),
    ('collections', 'OrderedDict'),
    ('torch._utils', '_rebuild_tensor_v2'),
}


class _Unpickler(pickle.Unpickler):
    """Unpickle tensors and plain values, but refuse all other classes."""

    def find_class(self, module, name):
        if (module, name) == ('torch.storage', '_load_from_bytes'):
            # reads the bytes of a tensor without running code
            return lambda data: torch.load(io.BytesIO(data), weights_only=True)
        if (module, name) not in _ALLOWED:
            raise pickle.UnpicklingError(
                f'it contains {module}.{name}, and a pickle can run code'
            )
        return super().find_class(module, name)


def read_predictions(path: str | PathLike, *wanted: str) -> list[dict]:
    """Read predictions from a pickle without running its code.

    Returns a dict per image with the tensors ``pred_label``, ``pred_score``,
    ``gt_label`` etc. Raises an Error if the file is invalid or lacks the
    ``wanted`` fields.
    """
    remedy = 'write it with the command test and `out`'
    content = Path(path).read_bytes()
    try:
        results = _Unpickler(io.BytesIO(content)).load()
    except Exception as error:  # damaged files raise various exceptions
        raise Error(f'{path} is not read: {error}; {remedy}') from error
    if not isinstance(results, list) or not results:
        raise Error(f'{path} contains no predictions; {remedy}')
    missing = {
        name
        for result in results
        for name in wanted
        if not isinstance(result, dict) or name not in result
    }
    if missing:
        raise Error(
            f'{path} lacks the fields {", ".join(sorted(missing))}; {remedy}'
        )
    return results
