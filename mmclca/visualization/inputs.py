# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Images as a model sees them."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from mmcv.transforms import Compose
from mmengine.config import Config
from mmpretrain.registry import TRANSFORMS
from torch import Tensor, nn

from mmclca.datasets.synthetic_leaves import draw_leaf, make_cultivars


@dataclass
class View:
    """An image that a model is to look at.

    Args:
        title (str): Its name.
        image (np.ndarray): RGB image as the model sees it, (H, W, 3), uint8.
        batch (Tensor): The same preprocessed, (1, 3, H, W).
    """

    title: str
    image: np.ndarray
    batch: Tensor


def drawn_leaves(
    num_leaves: int, seed: int = 0
) -> Iterator[tuple[str, np.ndarray]]:
    """Names and BGR images of drawn leaves, each of another cultivar.

    Args:
        num_leaves (int): How many.
        seed (int): What they look like. Defaults to 0.
    """
    rng = np.random.default_rng(seed)
    cultivars = make_cultivars(num_leaves, seed) if num_leaves else []
    for number, cultivar in enumerate(cultivars, start=1):
        image = draw_leaf(cultivar, rng, size=448)
        yield f'drawn leaf {number}', np.ascontiguousarray(image[..., ::-1])


def evaluation_transforms(cfg: Config, img_size: tuple[int, int]) -> Compose:
    """The test pipeline of a config, without what reads a file.

    Args:
        cfg (Config): The config. Without test data, images are resized.
        img_size (tuple[int, int]): Height and width that they then get.
    """
    height, width = img_size
    pipeline = [
        dict(type='Resize', scale=(width, height), interpolation='bicubic'),
        dict(type='PackInputs'),
    ]
    if cfg.get('test_dataloader'):
        pipeline = cfg.test_dataloader.dataset.get('pipeline', pipeline)
    built = map(TRANSFORMS.build, pipeline)
    return Compose([t for t in built if 'Load' not in type(t).__name__])


def view(
    model: nn.Module, pipeline: Compose, title: str, image: np.ndarray
) -> View:
    """An image as a model sees it.

    Args:
        model (nn.Module): A classifier.
        pipeline (Compose): Of :func:`evaluation_transforms`.
        title (str): Name of the image.
        image (np.ndarray): BGR image (H, W, 3), uint8.
    """
    shape = image.shape[:2]
    packed = pipeline(dict(img=image, img_shape=shape, ori_shape=shape))
    return view_of_input(model, title, packed['inputs'])


def view_of_input(model: nn.Module, title: str, inputs: Tensor) -> View:
    """An image that a pipeline has packed, as a model sees it.

    Args:
        model (nn.Module): A classifier.
        title (str): Name of the image.
        inputs (Tensor): BGR image (3, H, W), uint8.
    """
    batch = model.data_preprocessor(dict(inputs=[inputs]))['inputs']
    seen = inputs.flip(0).permute(1, 2, 0).contiguous().numpy()
    return View(title, seen, batch)
