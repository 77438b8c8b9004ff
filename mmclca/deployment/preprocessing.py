# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""How an image becomes the input of a model, in words that need no torch."""

from dataclasses import dataclass

from mmcv.transforms import CenterCrop, LoadImageFromFile, Resize
from mmengine.config import Config
from mmpretrain.datasets.transforms import PackInputs, ResizeEdge
from mmpretrain.models import ClsDataPreprocessor
from torch import nn

from mmclca.datasets.batches import without_cache
from mmclca.datasets.decoding import LoadPhotograph
from mmclca.registry import TRANSFORMS

ALLOWED = (
    'LoadImageFromFile (color, by OpenCV, as 8-bit), LoadPhotograph, Resize '
    "to a fixed scale without keep_ratio, ResizeEdge of the edge 'short', "
    'CenterCrop without auto_pad, and PackInputs'
)
# what a step must be set to
WANTED = {
    LoadPhotograph: {},
    LoadImageFromFile: dict(
        to_float32=False, color_type='color', imdecode_backend='cv2'
    ),
    Resize: dict(keep_ratio=False, scale_factor=None),
    ResizeEdge: dict(edge='short'),
    CenterCrop: dict(auto_pad=False),
    PackInputs: {},
}


@dataclass
class Preprocessing:
    """What is done to a decoded image (8-bit, BGR) before it enters a model.

    Args:
        steps (list[dict]): Resizing and cropping in their order. ``type`` is
            'Resize' (``width``, ``height``, ``backend``, ``interpolation``),
            'ResizeEdge' (``scale`` of the shorter edge, ``backend``,
            ``interpolation``) or 'CenterCrop' (``width``, ``height``).
        channel_order (str): 'RGB' or 'BGR', of the model's input.
        mean (list[float]): Subtracted from the pixels (0 to 255), one a
            channel in that order.
        std (list[float]): What they are divided by then.
        size (tuple[int, int]): Height and width of the model's input.
    """

    steps: list[dict]
    channel_order: str
    mean: list[float]
    std: list[float]
    size: tuple[int, int]


def preprocessing_of(config: Config, model: nn.Module) -> Preprocessing:
    """The test pipeline of a config and the data preprocessor of its model.

    Args:
        config (Config): A config with a ``test_dataloader``.
        model (nn.Module): The classifier.

    Raises:
        ValueError: If there is a step that cannot be told to one who has no
            mmcv, or images are not all of one size at the end. Says what is
            allowed.
    """
    pipeline = config.test_dataloader.dataset.pipeline
    built = [TRANSFORMS.build(step) for step in without_cache(pipeline)]
    problems = [problem for step in built for problem in _problems(step)]
    processor = model.data_preprocessor
    if type(processor) is not ClsDataPreprocessor:
        problems.append(f'data_preprocessor={type(processor).__name__}')
    if problems:
        raise ValueError(
            'the test pipeline holds what an exported file cannot describe: '
            f'{"; ".join(problems)}. Allowed in test_dataloader.dataset.'
            f'pipeline are {ALLOWED}; and as data_preprocessor '
            'ClsDataPreprocessor'
        )
    steps = [words for step in built for words in _words(step)]
    size = _final_size(steps)
    _check_padding(processor.pad_size_divisor, size)
    return Preprocessing(
        steps,
        'RGB' if processor.to_rgb else 'BGR',
        *_constants(processor),
        size,
    )


def _problems(step) -> list[str]:
    """What cannot be described of a step; empty where all can."""
    name = type(step).__name__
    if type(step) not in WANTED:
        return [name]
    return [
        f'{name}({key}={getattr(step, key)!r})'
        for key, value in WANTED[type(step)].items()
        if getattr(step, key) != value
    ]


def _words(step) -> list[dict]:
    """A step in plain words; nothing where pixels stay as they are."""
    if isinstance(step, Resize):
        width, height = step.scale
        words = dict(type='Resize', width=width, height=height)
    elif isinstance(step, ResizeEdge):
        words = dict(type='ResizeEdge', scale=step.scale)
    elif isinstance(step, CenterCrop):
        width, height = step.crop_size
        return [dict(type='CenterCrop', width=width, height=height)]
    else:
        return []
    return [
        dict(words, backend=step.backend, interpolation=step.interpolation)
    ]


def _final_size(steps: list[dict]) -> tuple[int, int]:
    """Height and width of every image at the end."""
    least = fixed = None  # (height, width) that images have, at the least
    for step in steps:
        if step['type'] == 'ResizeEdge':
            least, fixed = (step['scale'],) * 2, None
            continue
        size = step['height'], step['width']
        if step['type'] == 'CenterCrop':
            enough = least and all(map(int.__ge__, least, size))
            size = size if enough else None
        least = fixed = size
    if fixed is None:
        raise ValueError(
            'the test pipeline gives images of several sizes, an exported '
            'model takes one: resize them, for example with '
            "dict(type='ResizeEdge', scale=256), dict(type='CenterCrop', "
            'crop_size=224), the crop no larger than the resized image'
        )
    return fixed


def _check_padding(divisor: int, size: tuple[int, int]) -> None:
    if any(side % divisor for side in size):
        raise ValueError(
            f'data_preprocessor.pad_size_divisor={divisor} pads images of '
            f'{size[0]} x {size[1]} px, which an exported file cannot '
            'describe: let the test pipeline end at a multiple of it'
        )


def _constants(processor) -> tuple[list[float], list[float]]:
    """Mean and deviation; 0 and 1 where nothing is normalized."""
    if not processor._enable_normalize:
        return [0.0] * 3, [1.0] * 3
    return processor.mean.flatten().tolist(), processor.std.flatten().tolist()
