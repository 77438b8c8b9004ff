# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""The images of a data set after each step of its pipeline."""

from mmengine.dataset import Compose
from mmpretrain.registry import DATASETS, TRANSFORMS

from mmclca.datasets.image_cache import without_cache


class RecordingCompose(Compose):
    """A pipeline that keeps the image of the last sample after each step.

    Args:
        transforms (list[dict]): Configs of the steps.
    """

    def __init__(self, transforms):
        super().__init__([TRANSFORMS.build(step) for step in transforms])
        self.images = []

    def __call__(self, data):
        self.images = list(images_of('original', data))
        for step in self.transforms:
            data = step(data)
            if data is None:
                return None
            name = type(step).__name__ if self.images else 'original'
            self.images += images_of(name, data)
        return data


def images_of(name, data):
    """Names and copies of the images in a sample; some steps make several."""
    image = data.get('img')
    if isinstance(image, list):
        for number, view in enumerate(image, start=1):
            yield f'{name} {number}', view.copy()
    elif image is not None:
        yield name, image.copy()


def with_recorded_steps(settings):
    """A data set whose pipeline keeps its images, and that pipeline.

    Args:
        settings (dict): Its config; it may repeat or choose from another
            data set.
    """
    dataset = DATASETS.build(settings)
    inner = dataset
    while 'pipeline' not in settings:
        settings, inner = settings['dataset'], inner.dataset
    inner.pipeline = RecordingCompose(without_cache(settings['pipeline']))
    return dataset, inner.pipeline
