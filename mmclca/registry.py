# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Children of mmpretrain's registries, under the scope ``mmclca``.

The prefix in ``type='mmclca.X'`` makes mmengine import this package, so the
types work in any mmpretrain config without ``custom_imports``. This module
also registers the config names for ``mmpretrain.list_models`` and
``mmpretrain.get_model``.
"""

from collections.abc import Iterable
from importlib import import_module
from pkgutil import iter_modules

from mmengine import registry as mmengine
from mmpretrain import registry as mmpretrain_registry

from mmclca.model_index import register_models
from mmclca.utils.quiet import hide_unused_service

with hide_unused_service():
    import mmpretrain.datasets  # noqa: F401


DATA = 'datasets.registered'


def _child(name, parent, *packages):
    locations = [f'mmclca.{package}' for package in packages]
    return mmengine.Registry(name, None, parent, 'mmclca', locations)


MODELS = _child('model', mmpretrain_registry.MODELS, 'models')
DATASETS = _child('dataset', mmpretrain_registry.DATASETS, DATA)
DATA_SAMPLERS = _child('data sampler', mmpretrain_registry.DATA_SAMPLERS, DATA)
HOOKS = _child('hook', mmpretrain_registry.HOOKS, 'engine')
METRICS = _child('metric', mmpretrain_registry.METRICS, 'evaluation')
OPTIM_WRAPPERS = _child(
    'optimizer wrapper', mmpretrain_registry.OPTIM_WRAPPERS, 'engine'
)
PARAM_SCHEDULERS = _child(
    'parameter scheduler', mmpretrain_registry.PARAM_SCHEDULERS, 'engine'
)
TRANSFORMS = _child(
    'transform', mmpretrain_registry.TRANSFORMS, DATA, 'models'
)
# child of mmengine, which builds an ``init_cfg`` from its own registry
WEIGHT_INITIALIZERS = _child(
    'weight initializer', mmengine.WEIGHT_INITIALIZERS, 'models'
)


def import_modules(package: str, paths: Iterable[str]) -> None:
    """Import all modules of a package, which registers their classes.

    Args:
        package (str): Name of the package.
        paths (Iterable[str]): Its folders, ``__path__``.
    """
    for module in iter_modules(paths):
        import_module(f'{package}.{module.name}')


register_models()
