# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""The files of a model that is ready: calibrated, with a threshold."""

from pathlib import Path

import torch
from torch import Tensor

from mmclca.apis import TokenReductionInferencer
from mmclca.apis.features import extract_logits
from mmclca.apis.loading import load_classifier, save_classifier
from mmclca.apis.rejection import Threshold, fingerprint, write_threshold
from mmclca.datasets.photographs import Photographs
from mmclca.evaluation import accuracy, wilson
from mmclca.evaluation.open_set import SCORES, fit_threshold
from mmclca.models.heads.last_linear import last_linear, set_last_linear
from mmclca.utils.atomic_write import replace_text

from .job import Job
from .model_folder import ModelFolder

SCORE, ACCEPT = 'max_softmax', 0.95


def set_threshold(
    folder: ModelFolder, model: torch.nn.Module, logits: Tensor
) -> dict:
    """Write below which score a photograph is of none of the classes.

    Args:
        folder (ModelFolder): Where.
        model (nn.Module): What predicts, see :func:`fingerprint`.
        logits (Tensor): Class scores (N, K) of photographs that it, or its
            like, has not seen.

    Returns:
        dict: ``score`` and ``threshold``; None where there are no scores,
        and then the file is empty.
    """
    if not len(logits):
        replace_text(folder.threshold, '')
        return dict(score=None, threshold=None)
    value = fit_threshold(SCORES[SCORE](logits), ACCEPT)
    threshold = Threshold(SCORE, value, fingerprint(model))
    write_threshold(
        threshold, folder.threshold, accept=ACCEPT, images=len(logits)
    )
    return dict(score=SCORE, threshold=value)


def measure(
    checkpoint: Path, photographs: Photographs, device: str
) -> tuple[dict, Tensor]:
    """Accuracy of a model on photographs that it has not seen.

    Args:
        checkpoint (Path): The model.
        photographs (Photographs): The photographs.
        device (str): Where it runs.

    Returns:
        tuple[dict, Tensor]: ``n``, ``accuracy`` and its 95 % interval, ``low``
        to ``high``; the class scores (N, K).
    """
    inferencer = TokenReductionInferencer(checkpoint, device=device)
    logits, _ = extract_logits(inferencer, photographs.paths)
    labels = torch.tensor(photographs.labels)
    right = float(accuracy(logits, labels))
    low, high = wilson(right, len(labels))
    return dict(n=len(labels), accuracy=right, low=low, high=high), logits


def finish(job: Job, path: Path, temperature: float, logits: Tensor) -> None:
    """Write a trained model, calibrated, with its threshold.

    Args:
        job (Job): The fit; its facts get ``threshold``.
        path (Path): Checkpoint of the training.
        temperature (float): What its class scores are divided by.
        logits (Tensor): Class scores (N, K), divided, of photographs that
            its like has not seen.
    """
    model = load_classifier(path, device=job.device)
    layer = last_linear(model.head)
    weight, bias = layer.weight / temperature, layer.bias / temperature
    set_last_linear(model.head, weight.flatten(1), bias)
    save_classifier(model, job.folder.draft.model, job.classes)
    job.facts['threshold'] = set_threshold(job.folder.draft, model, logits)
