# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""What a model makes of one leaf, as plain data."""

from dataclasses import dataclass, replace

import cv2
import numpy as np
import torch
from mmengine.dataset import default_collate

from mmclca.apis import TokenReductionInferencer, best_classes
from mmclca.apis.output import answer_cells
from mmclca.datasets.batches import view_of_input
from mmclca.visualization import kinds, survivors

SIDE = 336  # pixels of the longer side of pictures, for a crisp look


@dataclass
class Stage:
    """What is left of a leaf after a stage.

    Args:
        tokens (int): Tokens that the reduction leaves, with CLS and cached
            ones.
        share (float): Of the patches, that with a token of its own.
        kinds (tuple[int, ...]): What became of the patches; see
            :func:`mmclca.visualization.kinds`. Empty where they are mixed.
        picture (np.ndarray): RGB image (H, W, 3), uint8, painted.
    """

    tokens: int
    share: float
    kinds: tuple[int, ...]
    picture: np.ndarray


@dataclass
class Prediction:
    """What a model makes of a leaf.

    Args:
        answer (list): Cells of its row, as ``answer_cells`` of
            ``mmclca.apis.output`` gives them.
        classes (list[dict]): ``label``, ``name`` and ``score`` of the best
            classes, best first.
        seen (np.ndarray): RGB image (H, W, 3), uint8, as the model sees it.
        num_patches (int): Patches of the image.
        tokens (int): Tokens that enter the first layer.
        stages (list[Stage]): One a reduction.
        gmacs (float): 1e9 multiply-accumulates spent on it.
    """

    answer: list
    classes: list[dict]
    seen: np.ndarray
    num_patches: int
    tokens: int
    stages: list[Stage]
    gmacs: float


def predict(
    inferencer: TokenReductionInferencer, packed: dict, topk: int = 5
) -> Prediction:
    """Name a leaf, and tell what became of it on the way.

    Args:
        inferencer (TokenReductionInferencer): The model.
        packed (dict): The image as ``inferencer.prepare`` gives it.
        topk (int): Classes to name. Defaults to 5.
    """
    (sample,) = inferencer.forward(default_collate([packed]), True)
    sample.set_metainfo(dict(image='leaf'))
    (result,) = inferencer.postprocess([sample], None)
    model = inferencer.model
    view = view_of_input(model, 'leaf', packed['inputs'])
    seen = _enlarged(view.image)
    (one,) = survivors(model, [replace(view, image=seen)])
    with torch.no_grad():
        tokens, _ = model.backbone.embed(view.batch)
    return Prediction(
        answer_cells(result),
        best_classes(result, inferencer.classes, topk),
        seen,
        tokens.num_patches,
        tokens.x.size(1),
        list(map(_stage, one.stages)),
        result['gmacs'],
    )


def _enlarged(image: np.ndarray) -> np.ndarray:
    scale = max(1.0, SIDE / max(image.shape[:2]))
    return cv2.resize(
        image, None, fx=scale, fy=scale, interpolation=cv2.INTER_CUBIC
    )


def _stage(stage) -> Stage:
    tokens, picture = len(stage.weights), stage.picture
    if stage.mixed:
        return Stage(tokens, 0.0, (), picture)
    found = tuple(kinds(stage.weights).unique().tolist())
    return Stage(tokens, stage.kept, found, picture)
