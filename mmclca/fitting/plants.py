# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Dependence of the photos of a plant, as a model stores it."""

from contextlib import suppress
from dataclasses import dataclass
from os import PathLike

from mmclca.checkpoints.model_folder import is_fitted
from mmclca.errors import Error
from mmclca.evaluation.fusion import DEPENDENCE

from .fit_folder import FitFolder


@dataclass(frozen=True)
class Dependence:
    """Dependence of the photos of a plant, and whether fit measured it."""

    value: float = DEPENDENCE
    is_measured: bool = False


def read_dependence(checkpoint: str | PathLike) -> Dependence:
    """Return the dependence for a model folder; the default without one."""
    if is_fitted(checkpoint):
        with suppress(OSError, Error):  # no record, or a damaged one
            figures = FitFolder.open(checkpoint).read().plants
            if figures is not None:
                return Dependence(figures.dependence, is_measured=True)
    return Dependence()
