# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Modes of ``torch.compile``, without any import."""

WITH_CUDA_GRAPHS = ('reduce-overhead', 'max-autotune')
MODES = ('default', *WITH_CUDA_GRAPHS, 'max-autotune-no-cudagraphs')
