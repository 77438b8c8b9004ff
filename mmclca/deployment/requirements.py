# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""What only an export needs, imported when it is asked for."""

from importlib import import_module
from types import ModuleType


def import_onnx() -> ModuleType:
    """Import ``onnx`` and see to it that ``onnxscript`` is there.

    Raises:
        ImportError: If one of them is missing; says how to install it.
    """
    _import('onnxscript')
    return _import('onnx')


def import_onnxruntime() -> ModuleType:
    """Import ``onnxruntime``, or say how to install it.

    Raises:
        ImportError: If it is missing.
    """
    return _import('onnxruntime')


def _import(name: str) -> ModuleType:
    try:
        return import_module(name)
    except ImportError as error:
        raise ImportError(
            f'Exporting to ONNX needs {name}: pip install "mmclca[deploy]" '
            '(or: pip install onnx onnxscript onnxruntime).'
        ) from error
