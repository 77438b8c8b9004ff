# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""What differs between supported versions of torch."""

from contextlib import AbstractContextManager, nullcontext

import torch

try:  # since torch 2.7
    from torch.compiler import is_exporting
except ImportError:

    def is_exporting() -> bool:
        """Return whether ``torch.export`` runs, which torch does not tell."""
        return False


def run_eagerly() -> AbstractContextManager:
    """Run compiled modules as they are, within a context.

    Before torch 2.6, they are compiled again for other shapes.
    """
    if hasattr(torch.compiler, 'set_stance'):
        return torch.compiler.set_stance('force_eager')
    return nullcontext()
