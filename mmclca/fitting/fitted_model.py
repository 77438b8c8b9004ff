# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Model written by ``fit``: predict with it, and change classes."""

import os
from collections.abc import Mapping
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any

from mmclca.apis import TokenReductionInferencer
from mmclca.apis.answers import SURE, prepare_answers
from mmclca.apis.inferencer import PREDICTION

from .adding import add_labeled_photos, add_photos
from .fit_folder import FitFolder
from .relabeling import move_photos, remove_class, rename_class
from .undoing import undo_change


class FittedModel:
    """Model written by :func:`mmclca.fitting.fit`.

    Args:
        folder (str | Path): The model folder.
        device (str, optional): Device. Defaults to None: a GPU if available.

    Attributes:
        folder (Path): The model folder.
        facts (dict): Content of fit.json.
        classes (list[str]): Class names.
        accuracy (float | None): Accuracy on new photos, 0 to 1. None if
            there are too few photos to measure it, or classes coincide with
            days, cameras or folders.

    Raises:
        FileNotFoundError: If the folder holds no model.
        Error: If fit.json is damaged.

    Example:
        >>> from mmclca import fit
        >>> model = fit('photos/', 'model/')
        >>> model.predict('new/')[0]['pred_class']
    """

    def __init__(self, folder: str | PathLike, device: str | None = None):
        self._files, self._device = FitFolder.open(folder), device
        self.folder = self._files.path
        self._read()

    def _read(self) -> None:
        record = self._files.read_complete()
        self.facts = record.to_json()
        self.classes = record.photos.classes
        self.accuracy = None
        if record.is_representative:
            self.accuracy = record.best.accuracy
        vars(self).pop('_inferencer', None)

    @cached_property
    def _inferencer(self) -> TokenReductionInferencer:
        return TokenReductionInferencer(self.folder, device=self._device)

    def predict(
        self,
        photos: Any,
        batch_size: int = 32,
        sure: float | None = None,
        among: str | PathLike | None = None,
    ) -> list[dict[str, Any]]:
        """Classify photos.

        Args:
            photos (str | Path | np.ndarray | Sequence): Files, folders,
                patterns or arrays, see :class:`TokenReductionInferencer`.
            batch_size (int): Photos per batch. Defaults to 32.
            sure (float, optional): Share of photos whose prediction set
                contains their class, in percent, 50 to 99. Defaults to None:
                no sets.
            among (str | Path, optional): File with the classes that can
                occur, one name per line. Defaults to None: all classes.

        Returns:
            list[dict]: One entry per photo: ``image`` (path), ``pred_class``
            (predicted class), ``pred_score`` (its probability), ``known``
            (False if flagged as unknown) and ``known_score`` (the compared
            score). Without a threshold, the last two are None. With ``sure``,
            also ``sure_set`` (the prediction set) and ``sure_answer`` (its
            only class or coarse class, or all classes in one text). An
            unreadable photo has ``image`` and ``error`` (the reason).

        Raises:
            Error: If the model has too few photos for ``sure``, or a class in
                ``among`` is unknown.
        """
        names = ('image', *PREDICTION, *SURE, 'error')
        answers = prepare_answers(self.folder, self.classes, among, sure)
        results = map(
            answers.apply, self._inferencer.stream(photos, batch_size)
        )
        return [
            {name: row[name] for name in names if name in row}
            for row in results
        ]

    def add_class(
        self,
        photos: str | PathLike,
        name: str | None = None,
        force: bool = False,
    ) -> None:
        """Add a class, or more photos of an existing class.

        The classifier is refitted to all photos; the backbone does not
        change. Previous photos may be missing: their features are stored in
        the folder of the model. The model before the change is kept, see
        :meth:`undo`.

        Args:
            photos (str | Path): Folder with photos of one class, or photos
                that were corrected in the phone app: the ZIP archive, which
                is unpacked next to it, or its folder.
            name (str, optional): Class name. Defaults to None: the name of
                the folder; the app's archives have several classes.
            force (bool): Whether to change the model although the name
                resembles another class, or the accuracy falls below its
                interval. Defaults to False.

        Raises:
            ConfirmationError: If a change needs ``force``. The model does not
                change.
            FileNotFoundError: If the folder does not exist.
            Error: If it is empty or has photos of another class. The
                model does not change.
        """
        folder = Path(os.path.abspath(os.path.expanduser(photos)))
        add_photos(self._files, folder, name, force, self._device)
        self._read()

    def add_photos(
        self,
        labels: Mapping[str, str],
        source: str | PathLike,
        force: bool = False,
    ) -> None:
        """Add photos of several classes, as :meth:`add_class`.

        Args:
            labels (Mapping[str, str]): Class by path; new classes are added.
            source (str | Path): Their folder or table, for messages.
            force (bool): See :meth:`add_class`. Defaults to False.

        Raises:
            ConfirmationError: If a change needs ``force``. The model does not
                change.
            Error: If a photo is in the model as another class. The model does
                not change.
        """
        place = Path(os.path.abspath(os.path.expanduser(source)))
        add_labeled_photos(self._files, labels, place, self._device, force)
        self._read()

    def remove_class(self, name: str, force: bool = False) -> None:
        """Remove a class with its photos, and refit the classifier.

        No photo file is deleted. The model before the change is kept, see
        :meth:`undo`.

        Args:
            name (str): Class name.
            force (bool): Whether to change the model although the accuracy
                falls below its interval. Defaults to False.

        Raises:
            ConfirmationError: If the change needs ``force``. The model does
                not change.
            Error: If the class is missing, or only two are left. The
                model does not change.
        """
        remove_class(self._files, name, force, self._device)
        self._read()

    def rename_class(self, name: str, new: str, force: bool = False) -> None:
        """Rename a class; all scores stay.

        If the model has a class with the new name, all photos join it, and
        the classifier is refitted. The model before the change is kept, see
        :meth:`undo`.

        Args:
            name (str): Class name.
            new (str): New name.
            force (bool): Whether to change the model although the new name
                belongs to another class or resembles it, or the accuracy
                falls below its interval. Defaults to False.

        Raises:
            ConfirmationError: If the change needs ``force``. The model does
                not change.
            Error: If the class is missing, or the new name is empty.
                The model does not change.
        """
        rename_class(self._files, name, new, force, self._device)
        self._read()

    def move_photos(
        self, labels: Mapping[str, str | None], force: bool = False
    ) -> None:
        """Move photos to other classes or remove them; refit the classifier.

        No photo file is moved or deleted. The model before the change is
        kept, see :meth:`undo`.

        Args:
            labels (Mapping[str, str | None]): New class by path in
                photographs.csv; None removes a photo.
            force (bool): Whether to change the model although the accuracy
                falls below its interval. Defaults to False.

        Raises:
            ConfirmationError: If the change needs ``force``. The model does
                not change.
            Error: If a photo or class is not in the model, or a class would
                lose all photos. The model does not change.
        """
        move_photos(self._files, labels, force, self._device)
        self._read()

    def undo(self) -> None:
        """Exchange the model with the one before the last change.

        A second call exchanges them again.

        Raises:
            Error: If there is no previous model, or it is damaged. The model
                does not change.
        """
        undo_change(self._files)
        self._read()
