# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""What differs between supported versions of torch."""

from contextlib import AbstractContextManager, nullcontext

import torch
from packaging.version import Version

# torch.compile and torch.export of token reduction
COMPILES = '2.8'
# the exporter to ONNX translates loops, which ATC needs
EXPORTS_LOOPS = '2.11'

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


def forget_casts() -> None:
    """Let autocast cast weights again, after a pass without gradients.

    torch 2.4 uses casts of such a pass later, too, and weights that were cast
    in it have no gradients.
    """
    if not torch.compiler.is_compiling():  # compilers cast every time
        torch.clear_autocast_cache()


def has_torch(oldest: str) -> bool:
    """Return whether torch has at least a version, such as '2.8'."""
    return Version(Version(torch.__version__).base_version) >= Version(oldest)


def require_torch(oldest: str, feature: str, alternative: str) -> None:
    """Raise if torch is too old for a feature.

    Args:
        oldest (str): First version of torch with the feature.
        feature (str): Name of the feature, which starts the message.
        alternative (str): Remedy with the installed version.

    Raises:
        ImportError: Names the installed and the needed version.
    """
    if not has_torch(oldest):
        raise ImportError(
            f'{feature} needs torch {oldest} or later, and torch '
            f'{torch.__version__} is installed; {alternative}'
        )
