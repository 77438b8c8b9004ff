# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Parts of a fit's record, with their description for readers."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TypeVar

from mmclca.datasets.photos import Problem
from mmclca.errors import Error
from mmclca.evaluation.open_set import NEAREST
from mmclca.models import Variant

from .budget import COST_UNITS

Part = TypeVar('Part')


def require_part(part: Part | None, key: str) -> Part:
    """Return a part of the record; raise an Error if it is missing."""
    if part is None:
        raise Error(f'{key} is missing')
    return part


def describe_share(share: float | None) -> str:
    """Describe a share in percent, or as unknown."""
    return 'unknown' if share is None else f'{share:.1%}'


def describe_interval(low: float | None, high: float | None) -> str:
    """Describe a 95% interval in brackets; empty if it is unknown."""
    if low is None or high is None:
        return ''
    return f' (95% CI {100 * low:.1f}-{high:.1%})'


@dataclass(frozen=True)
class Photos:
    """Photos of a model.

    Args:
        digest (str): Digest of the photo list. Defaults to ''.
        source (str): Folder or table. Defaults to ''.
        classes (list[str]): Class names. Defaults to [].
        counts (dict[str, int]): Training photos per class. Defaults to {}.
        problems (list[Problem]): Skipped photos and possible mistakes.
            Defaults to [].
        near_duplicate_counts (dict[str, int]): Near-duplicates per class
            that has some. Defaults to {}.
        near_duplicates (list[tuple[str, str]], optional): Pairs of
            near-duplicates. Defaults to None: not searched yet.
    """

    digest: str = ''
    source: str = ''
    classes: list[str] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    near_duplicate_counts: dict[str, int] = field(default_factory=dict)
    near_duplicates: list[tuple[str, str]] | None = None

    def describe(self) -> str:
        """Describe the numbers of photos and classes."""
        low, high = min(self.counts.values()), max(self.counts.values())
        per_class = f'{low}' if low == high else f'{low} to {high}'
        return (
            f'{sum(self.counts.values())} photos, {len(self.counts)} classes '
            f'({per_class} per class)'
        )


@dataclass(frozen=True)
class Weights:
    """Pretrained weights: name, and file or ``timm://NAME``."""

    name: str
    source: str


@dataclass(frozen=True)
class Model:
    """Selected model.

    Args:
        method (str, optional): Reducer, None without token reduction.
        keep_rate (float): Keep rate.
        img_size (int): Image size in pixels.
        out_type (str, optional): Features per layer; None if it is not a ViT.
        layers (tuple[int, ...], optional): Layers whose features are used.
        depth (int, optional): Layers of the full ViT.
    """

    method: str | None
    keep_rate: float
    img_size: int
    out_type: str | None
    layers: tuple[int, ...] | None
    depth: int | None

    @property
    def variant(self) -> Variant:
        """Variant to apply to the config of the pretrained model."""
        return Variant(
            method=self.method,
            keep_rate=self.keep_rate,
            img_size=self.img_size,
            out_type=self.out_type,
            layers=self.layers,
        )

    def describe(self) -> str:
        """Describe reduction, image size and omitted layers."""
        described = describe_variant(self.variant)
        if self.depth and self.layers and self.layers[-1] < self.depth - 1:
            number = self.layers[-1] + 1
            described += f', first {number} of {self.depth} layers'
        return described


def describe_variant(variant: Variant) -> str:
    """Describe a candidate: its reduction method and image size."""
    reduction = 'full ViT' if variant.out_type else 'full network'
    if variant.method:
        reduction = f'{variant.method}, keep rate {variant.keep_rate}'
    return f'{reduction}, {variant.img_size} px'


@dataclass(frozen=True)
class PhotoCost:
    """Cost per photo: model and (``_full``) full ViT.

    Args:
        gmacs (float): Multiply-accumulates in 1e9.
        gmacs_full (float): The same of the full ViT.
        params (int): Number of parameters.
        ms (float, optional): Latency in milliseconds. Defaults to None: not
            measured yet, like the fields below.
        ms_full (float, optional): The same of the full ViT.
        runtime (str, optional): Runtime of the measurement.
        busy (str): Note on a busy machine. Defaults to ''.
        machine (str, optional): Name of the machine.
    """

    gmacs: float
    gmacs_full: float
    params: int
    ms: float | None = None
    ms_full: float | None = None
    runtime: str | None = None
    busy: str = ''
    machine: str | None = None

    def __post_init__(self):
        if min(self.gmacs, self.gmacs_full, self.params) <= 0:
            raise Error(f'cost has a figure that is not above 0: {self}')

    @property
    def has_latency(self) -> bool:
        """Whether the latency was measured."""
        return self.runtime is not None

    def describe(self) -> str:
        """Describe the multiply-accumulates."""
        return f'{self.gmacs:.3g} GMACs'

    def describe_latency(self) -> str:
        """Describe the latency and the runtime."""
        ms = require_part(self.ms, 'ms')
        return f'{ms:.3g} ms per photo, {self.runtime}'


@dataclass(frozen=True)
class ComparedWeights:
    """Compared weights; figures are None if over the budget.

    Args:
        source (str): File or ``timm://NAME``.
        model (str, optional): Description of the model.
        gmacs (float, optional): Multiply-accumulates in 1e9.
        ms (float, optional): Latency, if the budget is one.
        accuracy (float, optional): Cross-validated accuracy.
    """

    source: str
    model: str | None = None
    gmacs: float | None = None
    ms: float | None = None
    accuracy: float | None = None

    def describe(self) -> str:
        """Describe the model, its cost and its accuracy."""
        costs = [
            f'{cost:.3g} {unit}'
            for cost, unit in zip(
                (self.gmacs, self.ms), COST_UNITS.values(), strict=True
            )
            if cost
        ]
        if self.model is None or not costs:
            return f'{self.source}: over the budget'
        figures = ', '.join([self.model, *costs])
        accuracy = describe_share(self.accuracy)
        return f'{self.source}: {figures}, {accuracy} accuracy'


@dataclass(frozen=True)
class Measurement:
    """Accuracy on ``n`` photos not used for training.

    ``low`` to ``high`` is its 95% interval.
    """

    n: int
    accuracy: float
    low: float
    high: float

    def describe(self) -> str:
        """Describe the accuracy with its interval."""
        interval = describe_interval(self.low, self.high)
        return f'{describe_share(self.accuracy)}{interval}'


@dataclass(frozen=True)
class FinetuneVal(Measurement):
    """Accuracies: fine-tuned model, and the linear probe before."""

    probe_accuracy: float


@dataclass(frozen=True)
class ClassRecall:
    """Recall of a class with ``n`` photos; None if it was not tested.

    ``low`` to ``high`` is its 95% interval.
    """

    n: int
    recall: float | None = None
    low: float | None = None
    high: float | None = None

    def describe(self) -> str:
        """Describe the recall with its interval."""
        interval = describe_interval(self.low, self.high)
        return f'{describe_share(self.recall)}{interval}'


@dataclass(frozen=True)
class Estimate:
    """Linear probe: its settings, and its accuracy by cross-validation.

    The accuracy, its 95% interval and the macro recall are None if no photo
    could be tested.

    Args:
        classifier (str): Name of the classifier.
        alpha (float): Regularization strength.
        late_cls_weight (float): Weight of the second feature subset.
        temperature (float): Divisor of the scores.
        folds (int): Number of folds.
        repeats (int): Number of repeats.
        accuracy (float, optional): Mean accuracy over repeats.
        low (float, optional): Lower bound of its interval.
        high (float, optional): Upper bound.
        macro_recall (float, optional): Mean recall over tested classes.
        per_class (dict[str, ClassRecall]): Recall per class.
        seconds (float): Duration.
    """

    classifier: str
    alpha: float
    late_cls_weight: float
    temperature: float
    folds: int
    repeats: int
    accuracy: float | None
    low: float | None
    high: float | None
    macro_recall: float | None
    per_class: dict[str, ClassRecall]
    seconds: float

    def describe(self) -> str:
        """Describe the accuracy with its interval."""
        interval = describe_interval(self.low, self.high)
        return f'{describe_share(self.accuracy)}{interval}'

    def describe_method(self) -> Iterator[str]:
        """Describe the tested photos and the cross-validation."""
        recalls = self.per_class.values()
        tested = [x.n for x in recalls if x.recall is not None]
        photos = f'on {sum(tested)} photos'
        if len(tested) < len(recalls):
            photos += f' of {len(tested)} of {len(recalls)} classes'
        yield (
            f'{photos}, {self.folds}-fold cross-validation repeated '
            f'{self.repeats} times'
        )
        yield (
            f'(each fold trains on {1 - 1 / self.folds:.0%} of the photos, '
            'the saved model on all)'
        )


@dataclass(frozen=True)
class ThresholdEstimate:
    """Similarity threshold for unknown classes; None with too few photos.

    Args:
        score (str, optional): Name of the compared score.
        threshold (float, optional): Photos below it are flagged.
        accept (float, optional): Share of known photos to accept.
        images (int, optional): Number of photos with a score.
        false_alarms (float, optional): Rate of flagged known photos.
        low (float, optional): Lower bound of its 95% interval.
        high (float, optional): Upper bound.
    """

    score: str | None = None
    threshold: float | None = None
    accept: float | None = None
    images: int | None = None
    false_alarms: float | None = None
    low: float | None = None
    high: float | None = None

    def describe(self) -> list[str]:
        """Describe the threshold and its false-alarm rate."""
        if self.score != NEAREST:
            return ['detection is off: too few photos to set a threshold']
        interval = describe_interval(self.low, self.high)
        return [
            f'flagged if similarity < {self.threshold:.3f}',
            f'false alarms {describe_share(self.false_alarms)}{interval}',
            'similar new classes are often not flagged',
        ]


@dataclass(frozen=True)
class Training:
    """Fine-tuning.

    Args:
        epochs (int): Number of epochs.
        seconds (float): Duration.
        finetune_val (FinetuneVal, optional): Accuracy on the photos held out,
            None with too few photos to report it.
    """

    epochs: int
    seconds: float
    finetune_val: FinetuneVal | None
