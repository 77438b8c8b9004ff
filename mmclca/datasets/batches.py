# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Batches of model inputs, from image files or a dataset."""

# before mmpretrain.datasets, to hide a line that it prints
import mmclca.registry  # noqa: F401

# isort: split
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

from mmclca.building import config_errors
from mmclca.configs import get_setting, require_settings
from mmclca.errors import Error
from mmclca.utils.files import read_bytes
from mmclca.utils.messages import check_integer

from .decoding import convert_to_bgr
from .image_files import decode_whole
from .load_photo import LoadPhoto

# settings by which a CustomDataset finds images
NAMES = {'ann_file', 'data_prefix', 'data_root'}
UPSTREAM = (CustomDataset, 'CustomDataset', 'mmpretrain.CustomDataset')


@dataclass
class Batch:
    """Preprocessed images with their labels and paths.

    ``images`` (B, 3, H, W) is missing if all are unreadable. ``positions``
    includes unreadable images; ``unread`` gives their problems by position.
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
    """Yield batches of images, preprocessed for a classifier.

    ``images`` is a dataset, or a list of files or arrays with ``prepare``, a
    :class:`Preparation`. ``indices`` selects images, ``progress`` wraps the
    list of batches.

    Raises:
        Error: If ``batch_size`` is below 1.
    """
    check_integer(batch_size=batch_size)
    indices = range(len(images)) if indices is None else indices
    starts = range(0, len(indices), batch_size)
    for chunk in progress([indices[i : i + batch_size] for i in starts]):
        # an unreadable image is its problem, a text
        inputs = {i: images[i] for i in chunk}
        if prepare is not None:
            inputs = {i: prepare(image) for i, image in inputs.items()}
        unread = {i: x for i, x in inputs.items() if isinstance(x, str)}
        packed = [x for i, x in inputs.items() if i not in unread]
        yield _batch(model, packed, chunk, unread)


def _batch(model, packed: list[dict], positions, unread) -> Batch:
    if not packed:
        return Batch(None, [], [], [], positions, unread)
    data = model.data_preprocessor(pseudo_collate(packed))
    samples = data['data_samples']
    labels = [
        int(sample.gt_label) for sample in samples if 'gt_label' in sample
    ]
    paths = [sample.get('img_path', '') for sample in samples]
    return Batch(data['inputs'], labels, paths, samples, positions, unread)


class Preparation:
    """Preprocess images with the test pipeline of a config.

    Without a test pipeline, images are resized to ``size`` (height, width).
    """

    def __init__(self, cfg: Config, size: tuple[int, int] | None = None):
        if size is None or cfg.get('test_dataloader'):
            require_settings(cfg, 'test_dataloader.dataset.pipeline')
            steps = without_cache(cfg.test_dataloader.dataset.pipeline)
        else:
            scale = size[::-1]
            resize = dict(type='Resize', scale=scale, interpolation='bicubic')
            steps = [resize, dict(type='PackInputs')]
        with config_errors():
            steps = [TRANSFORMS.build(step) for step in deepcopy(steps)]
        self.over_white = any(isinstance(x, LoadPhoto) for x in steps)
        remaining = (x for x in steps if 'Load' not in type(x).__name__)
        self.pipeline = Compose(list(remaining))

    def __call__(self, source, zoom: float = 1.0) -> dict | str:
        """Return the model input of an image, or the problem as a string.

        ``zoom`` crops the image to its central height / zoom, width / zoom.
        """
        try:
            image = crop_center(read_image(source, self.over_white), zoom)
        except Error as error:
            return str(error)
        shape = image.shape[:2]
        info = dict(img=image, img_shape=shape, ori_shape=shape)
        try:
            return self.pipeline(info)
        except (AssertionError, ValueError, cv2.error) as error:
            return f'{shape[0]} x {shape[1]} px: preprocessing failed: {error}'


def crop_center(image: np.ndarray, zoom: float) -> np.ndarray:
    """Crop an image (H, W, 3) to its center (H / zoom, W / zoom, 3)."""
    left = [(1 - 1 / zoom) * side / 2 for side in image.shape[:2]]
    rows, columns = (slice(round(x), -round(x) or None) for x in left)
    return image[rows, columns]


def without_cache(pipeline: list[dict]) -> list[dict]:
    """Replace ``CacheImages`` in a pipeline by its transforms."""
    steps = []
    for step in pipeline:
        cached = step['type'] == 'mmclca.CacheImages'
        steps += step['transforms'] if cached else [step]
    return steps


def read_image(source, over_white: bool = True) -> np.ndarray:
    """Read an image to BGR (H, W, 3), uint8, as in training.

    The source is a path or URL, a BGR array as returned by ``mmcv.imread``,
    a Pillow image, the content of a file, or a binary file, read from its
    beginning if it is seekable. ``over_white`` blends transparent pixels with
    white, as ``LoadPhoto`` does; otherwise alpha is ignored.

    Raises:
        Error: If the source is not a complete image, with the reason.
    """
    if isinstance(source, np.ndarray):
        return _checked(source)
    if isinstance(source, Image.Image):
        return convert_to_bgr(source)
    try:
        content = _content(source)
    except FileNotFoundError:
        raise Error('no such file or folder') from None
    except OSError as error:
        raise Error(f'{type(error).__name__}: {error}') from error
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
    """Return an array; raise Error if it is not a BGR image."""
    is_image = image.ndim == 3 and image.shape[2] == 3 and image.size
    if not is_image or image.dtype != np.uint8:
        raise Error(
            f'array of shape {image.shape} and type {image.dtype} is not a '
            'BGR image; expected shape (H, W, 3) and type uint8'
        )
    return image


@dataclass
class View:
    """Model input as RGB (H, W, 3), uint8, and preprocessed (1, 3, H, W)."""

    title: str
    image: np.ndarray
    batch: Tensor


def view(
    model: nn.Module, prepare: Preparation, title: str, image: np.ndarray
) -> View:
    """Preprocess a BGR image (H, W, 3), uint8; raise Error on failure."""
    packed = prepare(image)
    if isinstance(packed, str):
        raise Error(f'{title}: {packed}')
    return make_view(model, title, packed['inputs'])


def make_view(model: nn.Module, title: str, inputs: Tensor) -> View:
    """Preprocess a packed BGR image (3, H, W), uint8, for a classifier."""
    batch = model.data_preprocessor(dict(inputs=[inputs]))['inputs']
    seen = inputs.flip(0).permute(1, 2, 0).contiguous().numpy()
    return View(title, seen, batch)


def match_by_name(settings: object) -> object:
    """Replace mmpretrain's ``CustomDataset`` by :class:`ClassFolders`.

    Args:
        settings (dict): Config of a data loader or dataset.

    Returns:
        dict: Copy with replacements at all depths.
    """
    from .class_folders import ClassFolders  # circular import

    if isinstance(settings, list | tuple):
        return type(settings)(map(match_by_name, settings))
    if not isinstance(settings, dict):
        return settings
    replaced = {k: match_by_name(value) for k, value in settings.items()}
    if replaced.get('type') in UPSTREAM:
        replaced['type'] = ClassFolders
    return type(settings)(replaced)


def build_dataset(cfg: Config, split: str = 'test', **changes) -> BaseDataset:
    """Build the 'train', 'val' or 'test' dataset of a config.

    ``changes`` override settings, such as ``pipeline=[]`` to read no images.

    Raises:
        Error: If the config does not list images for the split.
    """
    dataset = get_setting(cfg, f'{split}_dataloader.dataset')
    if dataset is not None and not isinstance(dataset, dict):
        raise Error(
            f'{split}_dataloader.dataset={dataset!r} must be a group of '
            'settings (a dict)'
        )
    settings = {**(dataset or {}), **changes}
    has_names = settings.get('type') != 'CustomDataset' or NAMES & {*settings}
    if dataset is None or not has_names:
        raise Error(
            f'{split}_dataloader does not list images (a config stored in a '
            'checkpoint never does); pass the config file (as argument or '
            'as `config`), pass images if the tool accepts them, or set '
            f'`{split}_dataloader.dataset.data_root=FOLDER`'
        )
    init_default_scope('mmpretrain')
    with config_errors():
        return DATASETS.build(match_by_name(settings))


def select_per_class(
    labels: Sequence[int], limit: int, classes: Sequence[int] | None = None
) -> list[int]:
    """Return the positions of the first ``limit`` images per class."""
    labels = np.asarray(labels)
    wanted = np.unique(labels) if classes is None else classes
    positions = [np.flatnonzero(labels == label)[:limit] for label in wanted]
    return np.concatenate(positions).tolist() if len(positions) else []
