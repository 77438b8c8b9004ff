# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# Pre-training: no classes to count; pictures of what is reconstructed go to
# the visualizer.
_base_ = './default_runtime.py'
custom_hooks = [dict(type='mmclca.ReconstructionHook')]
