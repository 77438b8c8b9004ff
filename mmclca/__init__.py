# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from importlib import import_module

from mmclca.dependencies import check_dependencies
from mmclca.errors import Error
from mmclca.version import __version__

check_dependencies()

__all__ = [
    'Error',
    '__version__',
    'cost',
    'export_onnx',
    'fit',
    'reduce_tokens',
    'to_timm',
]

# lazy, because their imports take seconds
_MODULES = dict(
    cost='mmclca.evaluation.model_cost',
    export_onnx='mmclca.deployment',
    fit='mmclca.fitting',
    reduce_tokens='mmclca.models',
    to_timm='mmclca.models.timm_weights',
)


def __getattr__(name: str):
    if name in _MODULES:
        return getattr(import_module(_MODULES[name]), name)
    raise AttributeError(f'module {__name__!r} has no attribute {name!r}')


def __dir__() -> list[str]:
    return [*globals(), *__all__]  # for completion and Sphinx
