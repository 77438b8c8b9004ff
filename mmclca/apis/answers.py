# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Restrict predictions to some classes, and add answers with a guarantee."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike
from typing import Any

import numpy as np
import torch

from mmclca.checkpoints.gate.json_parsing import parse_json
from mmclca.checkpoints.model_folder import (
    ModelFolder,
    damaged_file_errors,
    is_fitted,
)
from mmclca.datasets.photos.spellings import normalize_name
from mmclca.errors import Error
from mmclca.evaluation.calibration_file import read_calibration
from mmclca.evaluation.conformal import LEVELS, Calibration, predict_sets
from mmclca.utils.files import read_lines
from mmclca.utils.messages import check_number, did_you_mean, printable

SURE = ('sure_answer', 'sure_set')  # keys in results, and columns
BETWEEN = ' | '  # between the classes in a set


def read_class_list(path: str | PathLike, classes: Sequence[str]) -> list[int]:
    """Read the classes that can occur, one name per line.

    Args:
        path (str | Path): The file, UTF-8; empty lines are skipped.
        classes (Sequence[str]): Model classes.

    Returns:
        list[int]: Their labels, in ascending order.

    Raises:
        OSError: If the file cannot be read.
        Error: If a name is unknown, or fewer than two are listed.
    """
    labels = {normalize_name(name): i for i, name in enumerate(classes)}
    names = [*filter(None, map(normalize_name, read_lines(path)))]
    for name in names:
        if name not in labels:
            raise Error(
                f'{path}: the model has no class {printable(name)!r}'
                f'{did_you_mean(name, labels)}; list names of its '
                f'{len(classes)} classes, one per line'
            )
    if len({*names}) < 2:
        raise Error(
            f'{path} lists {len({*names})} classes; list at least two, one '
            'name per line'
        )
    return sorted({labels[name] for name in names})


@dataclass(frozen=True)
class SetRule:
    """Rule for prediction sets.

    Args:
        level (float): Guaranteed share in percent.
        threshold (float): Smallest ratio between the probability of a class in
            the set and the largest one.
        coarse_classes (Mapping[str, str]): Coarse class by class. Defaults to
            {}: none.
    """

    level: float
    threshold: float
    coarse_classes: Mapping[str, str] = field(default_factory=dict)

    def answer(
        self, probabilities: np.ndarray, classes: Sequence[str]
    ) -> dict:
        """Return the set for a photo and its answer.

        Args:
            probabilities (np.ndarray): Class probabilities (K,).
            classes (Sequence[str]): Class names (K,).

        Returns:
            dict: ``sure_set``, the classes, most probable first;
            ``sure_answer``, the only class, the only coarse class, or all
            classes in one text.
        """
        in_set = predict_sets(torch.from_numpy(probabilities), self.threshold)
        order = (-probabilities).argsort(kind='stable')
        names = [classes[i] for i in order if in_set[i]]
        coarse = {self.coarse_classes.get(name) for name in names}
        answer = BETWEEN.join(names)
        if len(names) > 1 and len(coarse) == 1 and None not in coarse:
            (answer,) = coarse
        return dict(sure_answer=answer, sure_set=names)


@dataclass(frozen=True)
class Answers:
    """Additions to results from :class:`TokenReductionInferencer`.

    Args:
        classes (Sequence[str]): Model classes.
        among (Sequence[int], optional): Labels of the classes that can occur.
            Defaults to None: all.
        rule (SetRule, optional): Rule for prediction sets. Defaults to None:
            no sets.
    """

    classes: Sequence[str]
    among: Sequence[int] | None = None
    rule: SetRule | None = None

    def apply(self, result: dict) -> dict:
        """Return a result with restricted scores and its prediction set.

        Scores for other classes are NaN; the kept ones sum to 1.
        """
        if 'error' in result:
            return result
        kept = [*range(len(self.classes))]
        scores = result['pred_scores']
        if self.among is not None:
            kept = [*self.among]
            scores = np.full_like(scores, np.nan)
            scores[kept] = normalize(result['pred_scores'][kept])
            label = kept[int(scores[kept].argmax())]
            result = result | dict(
                pred_label=label,
                pred_class=self.classes[label],
                pred_score=float(scores[label]),
                pred_scores=scores,
            )
        if self.rule is None:
            return result
        names = [self.classes[i] for i in kept]
        return result | self.rule.answer(scores[kept], names)


def normalize(scores: np.ndarray) -> np.ndarray:
    """Divide scores (K,) by their sum; equal if all are 0."""
    clamped = scores.clip(min=1e-30)
    return clamped / clamped.sum()


@dataclass(frozen=True)
class CalibratedSets:
    """Prediction sets, calibrated with the training photos of a model.

    Args:
        calibration (Calibration): Probabilities of the photos.
        coarse_classes (Mapping[str, str]): See :class:`SetRule`.
    """

    calibration: Calibration
    coarse_classes: Mapping[str, str]

    @classmethod
    def read(
        cls, model: str | PathLike, classes: Sequence[str]
    ) -> 'CalibratedSets':
        """Read the calibration of a model folder with these classes.

        Raises:
            OSError: If a file cannot be read.
            Error: If it is another model, or one of an earlier version.
        """
        if not is_fitted(model):
            raise Error(
                f'`sure` needs a model folder written by fit, not {model}'
            )
        folder = ModelFolder.open(model)
        calibration = read_calibration(folder, len(classes))
        return cls(calibration, read_coarse_classes(folder))

    def find_rule(
        self, level: float, labels: Sequence[int] | None = None
    ) -> SetRule:
        """Find the rule for a level.

        Args:
            level (float): Guaranteed share in percent, 50 to 99.
            labels (Sequence[int], optional): Classes that can occur. Defaults
                to None: all.

        Raises:
            Error: If there are too few photos for the level.
        """
        calibration = self.calibration
        if labels is not None:
            calibration = calibration.among(labels)
        threshold = calibration.find_threshold(level)
        return SetRule(level, threshold, self.coarse_classes)


def prepare_answers(
    model: str | PathLike,
    classes: Sequence[str],
    among: str | PathLike | None = None,
    sure: float | None = None,
) -> Answers:
    """Prepare answers for a model.

    Args:
        model (str | Path): Model folder, or a checkpoint.
        classes (Sequence[str]): Its classes.
        among (str | Path, optional): File with the classes that can occur,
            see :func:`read_class_list`. Defaults to None: all classes.
        sure (float, optional): Guaranteed share of photos whose set contains
            their class, in percent. Defaults to None: no sets.

    Raises:
        OSError: If a file cannot be read.
        Error: If a class is unknown, the level is out of range, or the model
            has too few photos for it.
    """
    labels = None if among is None else read_class_list(among, classes)
    rule = None
    if sure is not None:
        check_number(*LEVELS, sure=sure)
        rule = CalibratedSets.read(model, classes).find_rule(sure, labels)
    return Answers(classes, labels, rule)


def read_coarse_classes(folder: ModelFolder) -> dict[str, str]:
    """Read the coarse class per class; empty without.

    Raises:
        Error: If fit.json is damaged.
    """
    record = folder.read_record()
    with damaged_file_errors(folder.file, Error):
        name, inner = 'guarantee', 'coarse_classes'
        guarantee = parse_json(dict[str, Any], record.get(name, {}), name)
        coarse_classes = guarantee.get(inner, {})
        return parse_json(dict[str, str], coarse_classes, f'{name}.{inner}')


def summarize_sets(results: Sequence[dict], level: float) -> str:
    """Count the photos with one class, a coarse one, or several.

    Whether photos are like the training photos is not known here.
    """
    counts = Counter(
        'one class'
        if len(result['sure_set']) == 1
        else 'several classes'
        if result['sure_answer'] == BETWEEN.join(result['sure_set'])
        else 'a coarse class'
        for result in results
        if 'sure_set' in result
    )
    parts = [
        f'{answer} for {number}' for answer, number in counts.most_common()
    ]
    return (
        f'With {level:g}% guarantee, if photos are like the training photos: '
        f'{", ".join(parts)}'
    )
