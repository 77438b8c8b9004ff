# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""The steps from an image to the input of a model, without torch."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np
from mmcv.transforms import CenterCrop, LoadImageFromFile, Resize
from mmengine.config import Config
from mmpretrain.datasets.transforms import PackInputs, ResizeEdge
from mmpretrain.models import ClsDataPreprocessor
from torch import nn

from mmclca.datasets.batches import without_cache
from mmclca.datasets.decoding import LoadPhotograph
from mmclca.models import reduces
from mmclca.registry import TRANSFORMS
from mmclca.version import __version__

ALLOWED = (
    'LoadImageFromFile (8-bit color, OpenCV), LoadPhotograph, Resize (fixed '
    "scale, no keep_ratio), ResizeEdge (edge='short'), CenterCrop (no "
    'auto_pad), PackInputs'
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
    """The steps from a decoded image (8-bit, BGR) to the input of a model.

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
    """Return the test pipeline of a config and the data preprocessor of its
    model.

    Args:
        config (Config): A config with a ``test_dataloader``.
        model (nn.Module): The classifier.

    Raises:
        ValueError: If there is a step that cannot be described without mmcv,
            or images are not all of one size at the end. Says what is
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
            'the test pipeline cannot be exported because of '
            f'{"; ".join(problems)}. test_dataloader.dataset.pipeline '
            f'supports {ALLOWED}; data_preprocessor supports '
            'ClsDataPreprocessor'
        )
    steps = {step: words for step in built if (words := _words(step))}
    size, divisor = _final_size(steps), processor.pad_size_divisor
    if any(side % divisor for side in size):
        raise ValueError(
            f'data_preprocessor.pad_size_divisor={divisor} cannot be '
            f'exported: resize {size[0]} x {size[1]} px to a multiple of it'
        )
    mean, std = [0.0] * 3, [1.0] * 3
    if processor._enable_normalize:
        mean, std = (
            one.flatten().tolist() for one in (processor.mean, processor.std)
        )
    order = 'RGB' if processor.to_rgb else 'BGR'
    return Preprocessing([*steps.values()], order, mean, std, size)


def _problems(step) -> list[str]:
    """Return what cannot be described of a step; empty where all can."""
    name = type(step).__name__
    if type(step) not in WANTED:
        return [name]
    return [
        f'{name}({key}={getattr(step, key)!r})'
        for key, value in WANTED[type(step)].items()
        if getattr(step, key) != value
    ]


def _words(step) -> dict:
    """Return a step in plain words; none where pixels stay as they are."""
    if isinstance(step, CenterCrop):
        width, height = step.crop_size
        return dict(type='CenterCrop', width=width, height=height)
    if isinstance(step, Resize):
        width, height = step.scale
        words = dict(type='Resize', width=width, height=height)
    elif isinstance(step, ResizeEdge):
        words = dict(type='ResizeEdge', scale=step.scale)
    else:
        return {}
    return dict(words, backend=step.backend, interpolation=step.interpolation)


def _final_size(steps) -> tuple[int, int]:
    """Height and width of every image at the end, tried on some."""
    sizes = set()
    for height, width in ((16, 160), (160, 16)):
        results = dict(img=np.zeros((height, width, 3), np.uint8))
        for step in steps:
            results = step(results)
        sizes.add(results['img'].shape[:2])
    if len(sizes) > 1:
        raise ValueError(
            'the test pipeline returns several image sizes: add '
            "dict(type='ResizeEdge', scale=256), dict(type='CenterCrop', "
            'crop_size=224)'
        )
    return sizes.pop()


def metadata_of(
    config: Config,
    model: nn.Module,
    preprocessing: Preprocessing,
    classes: Sequence[str],
    threshold: dict | None = None,
) -> dict[str, str]:
    """Return the metadata of an exported file.

    Args:
        config (Config): The config of the model.
        model (nn.Module): The classifier.
        preprocessing (Preprocessing): What is done to an image before it.
        classes (Sequence[str]): Names of the classes.
        threshold (dict, optional): ``score`` and ``threshold``, below which
            an image is of none of these. Defaults to None.

    Returns:
        dict[str, str]: Texts by name: ``preparation`` and ``classes`` as
        JSON; ``threshold``, JSON, null without one; the text of the
        ``config``; ``mmclca_version``; ``method``, the
        name of the reducer or 'none'; ``keep_rate``, JSON, a number or one a
        stage.
    """
    reducer = model.backbone.reducer if reduces(model.backbone) else None
    return dict(
        # the name that exported files have had from the start
        preparation=json.dumps(asdict(preprocessing)),
        classes=json.dumps(list(classes), ensure_ascii=False),
        threshold=json.dumps(threshold),
        config=config.pretty_text,
        mmclca_version=__version__,
        method=type(reducer).__name__ if reducer else 'none',
        keep_rate=json.dumps(reducer.keep_rate if reducer else 1.0),
    )
