# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from functools import cached_property
from os import PathLike
from pathlib import Path

from mmclca.apis import TokenReductionInferencer
from mmclca.apis.inferencer import answer_of

from .model_folder import ModelFolder
from .new_class import add_class
from .words import best_known


class FittedModel:
    """A model that :func:`mmclca.fitting.fit` wrote.

    Args:
        folder (str | Path): Its folder.
        device (str, optional): Where it runs. Defaults to None: on a GPU if
            there is one.

    Raises:
        FileNotFoundError: If there is no such model.
        ValueError: If its fit.json is damaged.

    Example:
        >>> from mmclca import fit
        >>> model = fit('photographs/', 'model/')
        >>> model.predict('new/')[0]['pred_class']
    """

    def __init__(
        self, folder: str | PathLike, device: str | None = None
    ) -> None:
        self._files = ModelFolder(folder)
        self._device = device
        self.facts = self._files.read_finished()

    @property
    def folder(self) -> Path:
        """Where its files are."""
        return self._files.path

    @property
    def classes(self) -> list[str]:
        """Names of its classes."""
        return self.facts['classes']

    @property
    def accuracy(self) -> float | None:
        """Share of photographs it has not seen that it names right, 0 to 1.

        None where the photographs cannot tell.
        """
        return best_known(self.facts)['accuracy']

    @cached_property
    def _inferencer(self) -> TokenReductionInferencer:
        threshold = self._files.threshold
        return TokenReductionInferencer(
            self._files.model,
            device=self._device,
            reject=threshold if threshold.is_file() else None,
        )

    def predict(self, photographs, batch_size: int = 32) -> list[dict]:
        """Name what is on photographs.

        Args:
            photographs (str | Path | np.ndarray | Sequence): Files, folders,
                patterns or arrays, see :class:`TokenReductionInferencer`.
            batch_size (int): Photographs at a time. Defaults to 32.

        Returns:
            list[dict]: Of each ``image`` (its path), ``pred_class``, the best
            class, and ``pred_score``, its probability; ``known``: whether it
            is of a class that the model knows, by its ``known_score`` (both
            None where fit could not tell). Where one cannot be read
            ``image`` and ``error``, which says why.
        """
        results = self._inferencer.stream(photographs, batch_size)
        return [
            result
            if 'error' in result
            else dict(image=result['image'], **answer_of(result))
            for result in results
        ]

    def add_class(
        self, photographs: str | PathLike, name: str | None = None
    ) -> None:
        """Teach the model a class, or more photographs of one.

        The classifier is fitted again, to all photographs; the network stays
        as it is.

        Args:
            photographs (str | Path): A folder of photographs of one class.
            name (str, optional): Its name. Defaults to None, that of the
                folder.

        Raises:
            FileNotFoundError: If there is no such folder, or photographs of
                the other classes are gone.
            ValueError: If it has no photographs. The model stays as it was.
        """
        self.facts = add_class(self._files, photographs, name, self._device)
        vars(self).pop('_inferencer', None)
