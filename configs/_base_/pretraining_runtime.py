# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# Pre-training: no class count check; the visualizer receives pictures of
# reconstructions.
_base_ = './default_runtime.py'
custom_hooks = [dict(type='mmclca.ReconstructionHook')]
