# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Image preprocessing stored with an exported model."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from mmcv.transforms import CenterCrop, LoadImageFromFile, Resize
from mmengine.config import Config
from mmpretrain.datasets.transforms import PackInputs, ResizeEdge
from mmpretrain.models import ClsDataPreprocessor
from torch import nn

from mmclca.datasets.batches import without_cache
from mmclca.datasets.load_photo import LoadPhoto
from mmclca.errors import Error
from mmclca.models import reduces
from mmclca.registry import TRANSFORMS
from mmclca.version import __version__

ALLOWED = (
    'LoadImageFromFile (8-bit color, OpenCV), LoadPhoto, Resize (fixed '
    "scale, no keep_ratio), ResizeEdge (edge='short'), CenterCrop (no "
    'auto_pad), PackInputs'
)
# settings required of each step
STEP_SETTINGS: dict[type, dict] = {
    LoadPhoto: {},
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
    """Steps from a decoded image (8-bit, BGR) to the model input.

    Args:
        steps (list[dict]): Resizing and cropping, in order. ``type`` is
            'Resize' (``width``, ``height``, ``backend``, ``interpolation``),
            'ResizeEdge' (``scale`` for the shorter edge, ``backend``,
            ``interpolation``) or 'CenterCrop' (``width``, ``height``).
        channel_order (str): Channel order of the input, 'RGB' or 'BGR'.
        mean (list[float]): Mean per channel, subtracted from pixel values (0
            to 255).
        std (list[float]): Divisor per channel, applied after the mean.
        size (tuple[int, int]): Height and width of the model input.
    """

    steps: list[dict]
    channel_order: str
    mean: list[float]
    std: list[float]
    size: tuple[int, int]


def read_preprocessing(config: Config, model: nn.Module) -> Preprocessing:
    """Describe the test pipeline and data preprocessor in plain values.

    Programs without mmcv can follow this description.

    Args:
        config (Config): Config with a ``test_dataloader``.
        model (nn.Module): Classifier.

    Returns:
        Preprocessing: The steps.

    Raises:
        Error: If a step or the data preprocessor is not supported (the
            message lists supported ones), or if the image size varies or is
            not a multiple of ``pad_size_divisor``.
    """
    pipeline = config.test_dataloader.dataset.pipeline
    built = [TRANSFORMS.build(step) for step in without_cache(pipeline)]
    problems = [
        problem for step in built for problem in _list_unsupported(step)
    ]
    processor: Any = model.data_preprocessor  # torch declares a Tensor
    if type(processor) is not ClsDataPreprocessor:
        problems.append(f'data_preprocessor={type(processor).__name__}')
    if problems:
        raise Error(
            'the test pipeline cannot be exported because of '
            f'{"; ".join(problems)}. test_dataloader.dataset.pipeline '
            f'supports {ALLOWED}; data_preprocessor supports '
            'ClsDataPreprocessor'
        )
    described = [(step, _describe(step)) for step in built]
    resizing = [step for step, description in described if description]
    size = _compute_final_size(resizing)
    divisor = processor.pad_size_divisor
    if any(side % divisor for side in size):
        raise Error(
            f'data_preprocessor.pad_size_divisor={divisor} cannot be '
            f'exported: resize {size[0]} x {size[1]} px to a multiple of it'
        )
    mean, std = [0.0] * 3, [1.0] * 3
    if processor._enable_normalize:
        mean = processor.mean.flatten().tolist()
        std = processor.std.flatten().tolist()
    return Preprocessing(
        steps=[description for _, description in described if description],
        channel_order='RGB' if processor.to_rgb else 'BGR',
        mean=mean,
        std=std,
        size=size,
    )


def _list_unsupported(step) -> list[str]:
    """List the unsupported settings of a step."""
    name = type(step).__name__
    if type(step) not in STEP_SETTINGS:
        return [name]
    return [
        f'{name}({key}={getattr(step, key)!r})'
        for key, value in STEP_SETTINGS[type(step)].items()
        if getattr(step, key) != value
    ]


def _describe(step) -> dict:
    """Describe a step as a dict; empty if it does not resize or crop."""
    if isinstance(step, CenterCrop):
        width, height = step.crop_size
        return dict(type='CenterCrop', width=width, height=height)
    if isinstance(step, Resize):
        width, height = step.scale
        size = dict(type='Resize', width=width, height=height)
    elif isinstance(step, ResizeEdge):
        size = dict(type='ResizeEdge', scale=step.scale)
    else:
        return {}
    return dict(size, backend=step.backend, interpolation=step.interpolation)


def _compute_final_size(steps) -> tuple[int, int]:
    """Output height and width of the steps; raise unless they are fixed."""
    sizes = set()
    for height, width in ((16, 160), (160, 16)):
        results = dict(img=np.zeros((height, width, 3), np.uint8))
        for step in steps:
            results = step(results)
        sizes.add(results['img'].shape[:2])
    if len(sizes) > 1:
        raise Error(
            'the test pipeline returns several image sizes: add '
            "dict(type='ResizeEdge', scale=256), dict(type='CenterCrop', "
            'crop_size=224)'
        )
    return sizes.pop()


def make_metadata(
    config: Config,
    model: nn.Module,
    preprocessing: Preprocessing,
    classes: Sequence[str],
    threshold: dict | None = None,
    sure: dict | None = None,
) -> dict[str, str]:
    """Make the metadata for an exported file.

    Args:
        config (Config): Model config.
        model (nn.Module): Classifier.
        preprocessing (Preprocessing): Image preprocessing.
        classes (Sequence[str]): Class names.
        threshold (dict, optional): ``score`` and ``threshold`` below which an
            image is classified as unknown. Defaults to None.
        sure (dict, optional): Result of :func:`.describe_sets`. Defaults to
            None: no prediction sets.

    Returns:
        dict[str, str]: ``preparation`` and ``classes`` as JSON; ``threshold``
        and ``sure`` as JSON, null if missing; the ``config`` text;
        ``mmclca_version``; ``method``, the name of the reducer or 'none';
        ``keep_rate`` as JSON, a number or one number per stage.
    """
    backbone: Any = model.backbone  # torch declares a Tensor
    reducer = backbone.reducer if reduces(backbone) else None
    return dict(
        # the established key in exported files
        preparation=json.dumps(asdict(preprocessing)),
        classes=json.dumps(list(classes), ensure_ascii=False),
        threshold=json.dumps(threshold),
        sure=json.dumps(sure, ensure_ascii=False),
        config=config.pretty_text,
        mmclca_version=__version__,
        method=type(reducer).__name__ if reducer else 'none',
        keep_rate=json.dumps(reducer.keep_rate if reducer else 1.0),
    )
