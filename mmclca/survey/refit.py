# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Fit a new model folder to the training photos and the labeled ones."""

import shutil
from contextlib import ExitStack
from os import PathLike
from pathlib import Path

from mmclca.checkpoints.model_folder import FILES, REPORT
from mmclca.errors import Error
from mmclca.fitting.adding import add_labeled_photos
from mmclca.fitting.fit_folder import FitFolder

from .measuring import MeasuredSurvey


def check_new_folder(path: str | PathLike, model: str | PathLike) -> None:
    """Raise an ``Error`` if a path for a new model is occupied or in a model.

    Args:
        path (str | Path): Folder for the new model.
        model (str | Path): Folder of the previous model.
    """
    folder = Path(path)
    if Path(model).resolve() in folder.resolve().parents:
        raise Error(
            f'{folder} is in the model {model}; choose another `refit`'
        )
    if folder.is_file() or (folder.is_dir() and any(folder.iterdir())):
        raise Error(f'{folder} already exists; choose another `refit`')


def refit(
    survey: MeasuredSurvey,
    model: str | PathLike,
    out: str | PathLike,
    device: str | None = None,
) -> None:
    """Fit a new model to the training photos and the labeled photos.

    The model folder is copied, and the classifier is refitted to all photos,
    as by ``add_class``. Photos without a class are left out. The survey
    is about the previous model.

    Args:
        survey (MeasuredSurvey): Labeled photos.
        model (str | Path): Surveyed model folder, which is kept.
        out (str | Path): Model folder to write.
        device (str, optional): Device. Defaults to None: a GPU if available.

    Raises:
        Error: If no photo has a class, ``out`` is occupied or in ``model``,
            or the model folder is damaged.
        OSError: If a file cannot be written.
    """
    check_new_folder(out, model)
    if not survey.labels:
        raise Error(
            f'{survey.table.source} has no label of a class, so there is '
            'nothing to fit'
        )
    new = FitFolder(out)
    with ExitStack() as undo:
        undo.callback(shutil.rmtree, new.path, ignore_errors=True)
        copy_model(FitFolder.open(model), new)
        add_labeled_photos(new, survey.labels, survey.table.source, device)
        undo.pop_all()  # the model is complete


def copy_model(files: FitFolder, new: FitFolder) -> None:
    """Copy a model with its cached features, without report and exports."""
    with files.locked():
        new.path.mkdir(parents=True, exist_ok=True)
        for name in FILES:
            source = files.path / name
            if name != REPORT and source.is_file():
                shutil.copyfile(source, new.path / name)
        if files.features.is_dir():
            shutil.copytree(files.features, new.features)
