# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Choose the unknown-class threshold of a model, and measure the detection."""

import math
from collections.abc import Sequence
from os.path import realpath

import torch
from torch import Tensor

from mmclca.datasets.photos import LabeledImages
from mmclca.errors import Error
from mmclca.evaluation.open_set import (
    auroc,
    false_positive_rate,
    fit_threshold,
    list_scores,
    recording_scores,
)
from mmclca.utils.messages import check_choice, warn

from .features import drop_unreadable, extract_logits
from .inferencer import TokenReductionInferencer


def choose_threshold(
    inferencer: TokenReductionInferencer,
    images: dict[str, LabeledImages],
    score: str | None = None,
    accept: float = 0.95,
    batch_size: int = 32,
) -> dict:
    """Choose the score threshold below which an image is flagged as unknown.

    It is chosen on the ``known`` images. With ``unknown`` and ``test`` images
    (other images of known classes), the detection is measured. ``score`` is a
    name from :func:`list_scores`, by default the first; ``accept`` is the
    share of known images to accept.

    Returns ``score``, ``threshold`` and the measurements. Raises an Error
    if the model does not provide the score, if classes of ``known`` or
    ``test`` images are new to the model, or if they share images with
    ``unknown``.
    """
    names = list_scores(inferencer.model.head)
    score = score or names[0]
    check_choice(names, score=score)
    _check(images, inferencer.classes)
    readable: dict[str, LabeledImages] = {}
    logits: dict[str, Tensor] = {}
    scores: dict[str, dict[str, Tensor]] = {x: {} for x in names}
    for part, part_images in images.items():
        with recording_scores(inferencer.model.head, names) as recorded:
            logits[part], unread = extract_logits(
                inferencer, part_images.paths, batch_size
            )
        for name in names:
            scores[name][part] = torch.cat([batch[name] for batch in recorded])
        readable[part] = drop_unreadable(part_images, unread)
    _warn_of_few(len(readable['known'].paths), accept)
    rows = {name: _measure(name, scores[name], accept) for name in names}
    notes = dict(
        score=score,
        threshold=rows[score]['threshold'],
        accept=accept,
        images={part: len(x.paths) for part, x in readable.items()},
        scores=[*rows.values()],
    )
    if 'unknown' in images:
        notes['test_accuracy'] = accuracy_by_name(
            readable['test'], logits['test'], inferencer.classes
        )
    return notes


def _measure(name: str, scores: dict[str, Tensor], accept: float) -> dict:
    """Fit the threshold for a score, and measure the detection if possible."""
    threshold = fit_threshold(scores['known'], accept)
    row = dict(score=name, threshold=threshold)
    if 'unknown' in scores:
        test, unknown = scores['test'], scores['unknown']
        row.update(
            auroc=auroc(test, unknown),
            fpr95=false_positive_rate(test, unknown),
            known_lost=_share(test < threshold),
            unknown_rejected=_share(unknown < threshold),
        )
    return row


def _share(flags: Tensor) -> float:
    return float(flags.double().mean())


def check_known(images: LabeledImages, classes: Sequence[str]) -> None:
    """Refuse images of classes unknown to the model."""
    strange = sorted({x for x in images.names if x is not None} - {*classes})
    if strange:
        raise Error(
            f'{images.source} has images of {len(strange)} classes that the '
            f'model does not know ({", ".join(strange[:3])}, ...); it knows '
            f'{", ".join(classes[:3])}, ...; to name the labels of a list, '
            'put classes.txt in its folder'
        )


def common_files(images: LabeledImages, compared: LabeledImages) -> set[str]:
    """Files in both sets of images, symbolic links resolved."""
    return {*map(realpath, images.paths)} & {*map(realpath, compared.paths)}


def accuracy_by_name(
    images: LabeledImages, logits: Tensor, classes: Sequence[str]
) -> float | None:
    """Accuracy over the images with a class name, or None without any."""
    pairs = zip(images.names, logits.argmax(dim=1).tolist(), strict=True)
    correct = [name == classes[label] for name, label in pairs if name]
    return sum(correct) / len(correct) if correct else None


def _check(images: dict[str, LabeledImages], classes: Sequence[str]) -> None:
    """Refuse new classes and shared images; warn if ``test`` shares some."""
    for name in images.keys() - {'unknown'}:
        part, unknown = images[name], images.get('unknown')
        if unknown and (both := common_files(part, unknown)):
            raise Error(
                f'{len(both)} images of {unknown.source} are also in '
                f'{part.source}, such as {min(both)}; remove them from one'
            )
        check_known(part, classes)
    if 'test' not in images:
        return
    test = images['test']
    if both := common_files(images['known'], test):
        warn(
            f'{len(both)} of {len(test.paths)} test images ({test.source}) '
            'are also used to choose the threshold, so known_lost may be too '
            'low; use others for `known` or `test`'
        )


def _warn_of_few(number: int, accept: float) -> None:
    """Warn if every known image has to be accepted."""
    if accept < 1 and number * (1 - accept) < 1 - 1e-9:
        least = math.ceil(1 / (1 - accept) - 1e-9)
        warn(
            f'with only {number} known images, the threshold is their lowest '
            f'score; for `accept={accept:g}`, use {least} or more'
        )
