# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Predictions that ``tools/test.py --out`` has written."""

import io
import pickle
from pathlib import Path

import torch

# what such a file names beside tensors and plain values
_ALLOWED = {
    ('_codecs', 'encode'),
    ('collections', 'OrderedDict'),
    ('torch._utils', '_rebuild_tensor_v2'),
}


class _Unpickler(pickle.Unpickler):
    """Reads tensors and plain values; runs no other code."""

    def find_class(self, module, name):
        if (module, name) == ('torch.storage', '_load_from_bytes'):
            return _read_storage
        if (module, name) not in _ALLOWED:
            raise pickle.UnpicklingError(
                f'it contains {module}.{name}, and a pickle can run code'
            )
        return super().find_class(module, name)


def _read_storage(data):
    return torch.load(io.BytesIO(data), weights_only=True)


def read_predictions(path, *wanted: str) -> list[dict]:
    """Read predictions without running code that the file may carry.

    Returns:
        list[dict]: A prediction an image: tensors ``pred_label``,
        ``pred_score``, ``gt_label``, and more.

    Raises:
        ValueError: If it holds something else.
    """
    how = 'write it with tools/test.py CONFIG CHECKPOINT --out results.pkl'
    try:
        results = _Unpickler(io.BytesIO(Path(path).read_bytes())).load()
    except OSError:
        raise
    except Exception as error:  # a damaged file raises all kinds
        raise ValueError(f'{path} is not read: {error}; {how}') from error
    if not isinstance(results, list) or not results:
        raise ValueError(f'{path} contains no predictions; {how}')
    missing = {
        name
        for result in results
        for name in wanted
        if not isinstance(result, dict) or name not in result
    }
    if missing:
        raise ValueError(
            f'{path} lacks the fields {", ".join(sorted(missing))}; {how}'
        )
    return results
