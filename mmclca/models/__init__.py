# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from mmclca.utils import checkpoint_loader  # noqa: F401

from .backbones import *  # noqa: F403
from .classifiers import *  # noqa: F403
from .cross_layer_cache import CrossLayerCache
from .heads import *  # noqa: F403
from .reducers import *  # noqa: F403
from .retrievers import *  # noqa: F403

__all__ = ['CrossLayerCache']
