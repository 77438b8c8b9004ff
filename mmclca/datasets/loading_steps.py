# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Name the file if a step of mmcv cannot decode an image."""

from collections.abc import Iterator

import cv2
from mmcv.transforms import LoadImageFromFile

from mmclca.datasets.decoding import UndecodedError
from mmclca.datasets.image_cache import CacheImages


class NamedLoading:
    """A step that loads images, whose errors name the file.

    mmcv reports an image that it cannot decode as a failed assertion, and an
    empty file as an error of OpenCV.

    Args:
        step (LoadImageFromFile): The step.
    """

    def __init__(self, step: LoadImageFromFile):
        self.step = step

    def __call__(self, results: dict) -> dict | None:
        """Run the step.

        Args:
            results (dict): A sample with ``img_path``.

        Returns:
            dict | None: Result of the step.

        Raises:
            OSError: If the file cannot be read.
            UndecodedError: If the image cannot be decoded; names the file.
        """
        try:
            return self.step(results)
        except (AssertionError, cv2.error) as error:
            raise UndecodedError(
                f'{results["img_path"]}: no image, or a damaged one; replace '
                'or remove the file'
            ) from error

    def __repr__(self):
        return repr(self.step)


def name_unread_files(dataset: object) -> None:
    """Wrap the steps of a dataset that load images in ``NamedLoading``."""
    for steps in _list_pipelines(dataset):
        for i, step in enumerate(steps):
            if isinstance(step, LoadImageFromFile):
                steps[i] = NamedLoading(step)


def _list_pipelines(dataset: object) -> Iterator[list]:
    """Yield the steps of a dataset, its cache, and datasets inside of it."""
    parts = getattr(dataset, '__dict__', {})
    for name in ('dataset', 'datasets'):
        inner = parts.get(name, ())
        for part in inner if isinstance(inner, (list, tuple)) else [inner]:
            yield from _list_pipelines(part)
    steps = getattr(parts.get('pipeline'), 'transforms', [])
    yield steps
    for step in steps:
        if isinstance(step, CacheImages):
            yield step.steps.transforms
