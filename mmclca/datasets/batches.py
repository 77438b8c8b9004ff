# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Images as a model reads them, from files or a data set."""

from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, field

import cv2
import numpy as np
from mmcv.transforms import Compose
from mmengine.config import Config
from mmengine.dataset import BaseDataset, pseudo_collate
from mmengine.registry import init_default_scope
from mmpretrain.datasets import CustomDataset
from mmpretrain.registry import DATASETS, TRANSFORMS
from mmpretrain.structures import DataSample
from PIL import Image
from torch import Tensor, nn

from mmclca.utils.files import read_bytes
from mmclca.utils.messages import integer

from .decoding import LoadPhotograph, bgr_of
from .image_files import decode_whole

# settings of a CustomDataset by which it finds images
NAMES = {'ann_file', 'data_prefix', 'data_root'}
UPSTREAM = (CustomDataset, 'CustomDataset', 'mmpretrain.CustomDataset')


@dataclass
class Batch:
    """Some images as a model reads them.

    Args:
        images (Tensor, optional): Preprocessed, (B, 3, H, W); None where no
            image can be read.
        labels (list[int]): Their classes, where there are labels.
        paths (list[str]): Their files.
        samples (list[DataSample]): What the pipeline says of them.
        positions (Sequence[int]): Of all, also of those that are not read.
        unread (dict[int, str]): By position why others cannot be read.
    """

    images: Tensor | None
    labels: list[int]
    paths: list[str]
    samples: list[DataSample] = field(default_factory=list)
    positions: Sequence[int] = ()
    unread: dict[int, str] = field(default_factory=dict)


def batches(
    model: nn.Module,
    images: Sequence,
    indices: Sequence[int] | None = None,
    batch_size: int = 32,
    prepare: Callable | None = None,
    progress: Callable = iter,
) -> Iterator[Batch]:
    """Yield images as a model reads them.

    Args:
        model (nn.Module): A classifier; its preprocessor is used.
        images (Sequence): Files or arrays, or a data set.
        indices (Sequence[int], optional): Which of them, in this order.
            Defaults to None: all.
        batch_size (int): Images at a time. Defaults to 32.
        prepare (Callable, optional): A :class:`Preparation` of files or
            arrays. Defaults to None: a data set has its own pipeline.
        progress (Callable): Wraps the list of batches. Defaults to ``iter``.

    Raises:
        ValueError: If ``batch_size`` is below 1.
    """
    integer(batch_size=batch_size)
    indices = range(len(images)) if indices is None else indices
    starts = range(0, len(indices), batch_size)
    for chunk in progress([indices[i : i + batch_size] for i in starts]):
        found = {i: images[i] for i in chunk}
        if prepare is not None:
            found = {i: prepare(image) for i, image in found.items()}
        unread = {i: x for i, x in found.items() if isinstance(x, str)}
        packed = [x for i, x in found.items() if i not in unread]
        yield _batch(model, packed, chunk, unread)


def _batch(model, packed: list[dict], positions, unread) -> Batch:
    if not packed:
        return Batch(None, [], [], [], positions, unread)
    data = model.data_preprocessor(pseudo_collate(packed))
    samples = data['data_samples']
    labels = [int(one.gt_label) for one in samples if 'gt_label' in one]
    paths = [one.get('img_path', '') for one in samples]
    return Batch(data['inputs'], labels, paths, samples, positions, unread)


class Preparation:
    """Prepares images as the test data set of a config does.

    Args:
        cfg (Config): The config.
        size (tuple[int, int], optional): Height and width that images get
            where the config has no test data. Defaults to None.
    """

    def __init__(self, cfg: Config, size: tuple[int, int] | None = None):
        if cfg.get('test_dataloader'):
            steps = without_cache(cfg.test_dataloader.dataset.pipeline)
        else:
            scale = size[::-1]
            resize = dict(type='Resize', scale=scale, interpolation='bicubic')
            steps = [resize, dict(type='PackInputs')]
        steps = [TRANSFORMS.build(step) for step in deepcopy(steps)]
        self.over_white = any(isinstance(x, LoadPhotograph) for x in steps)
        rest = (x for x in steps if 'Load' not in type(x).__name__)
        self.pipeline = Compose([*rest])

    def __call__(self, source, zoom: float = 1.0) -> dict | str:
        """Return the model input of an image, or why it is unreadable.

        With ``zoom``, only the central 1 / ``zoom`` of its height and width.
        """
        try:
            image = middle(read_image(source, self.over_white), zoom)
        except ValueError as error:
            return str(error)
        shape = image.shape[:2]
        info = dict(img=image, img_shape=shape, ori_shape=shape)
        try:
            return self.pipeline(info)
        except (AssertionError, ValueError, cv2.error) as error:
            return f'{shape[0]} x {shape[1]} px: preprocessing failed: {error}'


def middle(image: np.ndarray, zoom: float) -> np.ndarray:
    """Cut the middle out of an image (H, W, 3), (H / zoom, W / zoom, 3)."""
    left = [(1 - 1 / zoom) * side / 2 for side in image.shape[:2]]
    rows, columns = (slice(round(x), -round(x) or None) for x in left)
    return image[rows, columns]


def without_cache(pipeline: list[dict]) -> list[dict]:
    """Give the steps of a pipeline, none of them in ``CacheImages``."""
    steps = []
    for step in pipeline:
        cached = step['type'] == 'mmclca.CacheImages'
        steps += step['transforms'] if cached else [step]
    return steps


def read_image(source, over_white: bool = True) -> np.ndarray:
    """Read an image as in training.

    Args:
        source (str | np.ndarray | Image | bytes | BinaryIO): A path or URL;
            a BGR image (H, W, 3), uint8, as returned by ``mmcv.imread``; a
            Pillow image; the content of a file; or a binary file, which is
            read from its beginning if it is seekable.
        over_white (bool): Whether to blend transparent pixels with white, as
            ``LoadPhotograph`` does; else alpha is ignored, as in
            ``LoadImageFromFile``. Defaults to True.

    Returns:
        np.ndarray: BGR image (H, W, 3), uint8.

    Raises:
        ValueError: If the source is not a complete image, with the reason.
    """
    if isinstance(source, np.ndarray):
        return _checked(source)
    if isinstance(source, Image.Image):
        return bgr_of(source)
    try:
        content = _content(source)
    except FileNotFoundError:
        raise ValueError('no such file or folder') from None
    except OSError as error:
        raise ValueError(f'{type(error).__name__}: {error}') from error
    return decode_whole(content, over_white)


def _content(source) -> bytes:
    if isinstance(source, str):
        return read_bytes(source)
    if not hasattr(source, 'read'):
        return bytes(source)
    if source.seekable():
        source.seek(0)
    return source.read()


def _checked(image: np.ndarray) -> np.ndarray:
    """Return an array if it is a BGR image, else raise a ValueError."""
    is_image = image.ndim == 3 and image.shape[2] == 3 and image.size
    if not is_image or image.dtype != np.uint8:
        raise ValueError(
            f'array of shape {image.shape} and type {image.dtype} is not a '
            'BGR image; expected shape (H, W, 3) and type uint8'
        )
    return image


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


def view(
    model: nn.Module, prepare: Preparation, title: str, image: np.ndarray
) -> View:
    """Show a BGR image (H, W, 3), uint8, as a model sees it.

    Raises:
        ValueError: If it cannot be prepared.
    """
    packed = prepare(image)
    if isinstance(packed, str):
        raise ValueError(f'{title}: {packed}')
    return view_of_input(model, title, packed['inputs'])


def view_of_input(model: nn.Module, title: str, inputs: Tensor) -> View:
    """Return an image that a pipeline has packed, as a model sees it.

    Args:
        model (nn.Module): A classifier.
        title (str): Name of the image.
        inputs (Tensor): BGR image (3, H, W), uint8.
    """
    batch = model.data_preprocessor(dict(inputs=[inputs]))['inputs']
    seen = inputs.flip(0).permute(1, 2, 0).contiguous().numpy()
    return View(title, seen, batch)


def match_by_name(settings):
    """Replace mmpretrain's ``CustomDataset`` by :class:`ClassFolders`.

    Args:
        settings (dict): A data loader or a dataset of a config.

    Returns:
        dict: A copy, changed at all depths.
    """
    from .class_folders import ClassFolders  # which imports this module

    if isinstance(settings, list | tuple):
        return type(settings)(map(match_by_name, settings))
    if not isinstance(settings, dict):
        return settings
    found = {k: match_by_name(value) for k, value in settings.items()}
    if found.get('type') in UPSTREAM:
        found['type'] = ClassFolders
    return type(settings)(found)


def dataset_of(cfg: Config, split: str = 'test', **changes) -> BaseDataset:
    """Build a dataset of a config.

    Args:
        cfg (Config): The config.
        split (str): 'train', 'val' or 'test'. Defaults to 'test'.
        **changes: Dataset settings to override, such as ``pipeline=[]`` to
            read no images.

    Raises:
        ValueError: If the config has no such dataset.
    """
    loader = cfg.get(f'{split}_dataloader') or {}
    settings = {**loader.get('dataset', {}), **changes}
    has_names = settings.get('type') != 'CustomDataset' or NAMES & {*settings}
    if 'dataset' not in loader or not has_names:
        raise ValueError(
            f'{split}_dataloader does not list images (a config stored in a '
            'checkpoint never does); pass the config file (as argument or '
            'with --config), pass images if the tool accepts them, or set '
            f'--cfg-options {split}_dataloader.dataset.data_root=FOLDER'
        )
    init_default_scope('mmpretrain')
    return DATASETS.build(match_by_name(settings))


def first_of_each_class(
    labels: Sequence[int], most: int, classes: Sequence[int] | None = None
) -> list[int]:
    """Positions of the first images of each class."""
    labels = np.asarray(labels)
    wanted = np.unique(labels) if classes is None else classes
    found = [np.flatnonzero(labels == label)[:most] for label in wanted]
    return np.concatenate(found).tolist() if len(found) else []
