# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from operator import ge, le

from mmclca.registry import HOOKS

from .atomic_checkpoint_hook import AtomicCheckpointHook


@HOOKS.register_module()
class LastBestCheckpointHook(AtomicCheckpointHook):
    """An ``AtomicCheckpointHook``, of equally good ones keeping the last.

    With few validation images many epochs are equally good, and mmengine
    keeps the first of them, of a network that has hardly been trained.
    """

    rule_map = dict(greater=ge, less=le)
