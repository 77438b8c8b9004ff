# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Register the configs of this package by name in mmpretrain."""

from pathlib import Path

from mmpretrain.apis.model import ModelHub

PACKAGE = Path(__file__).parent


def package_root() -> Path:
    """Return the parent folder of ``configs``.

    It is inside the package if installed from a wheel, else the checkout.
    """
    installed = PACKAGE / '.mim'
    return installed if installed.is_dir() else PACKAGE.parent


def register_models() -> None:
    """Add ``configs`` to ``mmpretrain.list_models`` and ``get_model``."""
    index = package_root() / 'model-index.yml'
    if index.is_file():
        ModelHub.register_model_index(index, package_root())
