# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""The configs of this package by their names, as mmpretrain finds its own."""

from pathlib import Path

from mmpretrain.apis.model import ModelHub

PACKAGE = Path(__file__).parent


def home() -> Path:
    """Return the folder with ``configs``: of the wheel, or else the checkout.

    A copy of the package alone has none in it.
    """
    installed = PACKAGE / '.mim'
    return installed if installed.is_dir() else PACKAGE.parent


def register_models() -> None:
    """Let ``mmpretrain.list_models`` and ``get_model`` know ``configs``."""
    index = home() / 'model-index.yml'
    if index.is_file():
        ModelHub.register_model_index(index, home())
