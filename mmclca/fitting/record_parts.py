# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Parts of a fit's record: photos, weights, model and threshold.

Screen and report show their descriptions.
"""

from dataclasses import dataclass, field
from typing import TypeVar

from mmclca.datasets.photos import Problem, Spread
from mmclca.errors import Error
from mmclca.evaluation.open_set import NEAREST
from mmclca.languages import text
from mmclca.models import Variant
from mmclca.utils.messages import join_first

from .wording import (
    Description,
    count_classes,
    count_photos,
    interval,
    percent,
)

Part = TypeVar('Part')


def require_part(part: Part | None, key: str) -> Part:
    """Return a part of the record; raise an Error if it is missing."""
    if part is None:
        raise Error(f'{key} is missing')
    return part


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
        spreads (list[Spread]): How classes are spread over days, cameras,
            folders and named groups, as far as known. Defaults to [].
    """

    digest: str = ''
    source: str = ''
    classes: list[str] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    near_duplicate_counts: dict[str, int] = field(default_factory=dict)
    near_duplicates: list[tuple[str, str]] | None = None
    spreads: list[Spread] = field(default_factory=list)

    @property
    def coinciding(self) -> list[Spread]:
        """Spreads over days, cameras or folders that coincide with classes."""
        return [x for x in self.spreads if x.kind != 'group' and x.coinciding]

    @property
    def groups(self) -> Spread | None:
        """Spread over the groups that the user named, if any."""
        return next((x for x in self.spreads if x.kind == 'group'), None)

    def describe(self) -> str:
        """Describe the numbers of photos and classes."""
        low, high = min(self.counts.values()), max(self.counts.values())
        per_class = f'{low}'
        if low < high:
            per_class = text('count.range', low=low, high=high)
        return text(
            'model.photos',
            photos=count_photos(sum(self.counts.values())),
            classes=count_classes(len(self.counts)),
            per_class=per_class,
        )

    def describe_near_duplicates(self) -> Description:
        """Describe the near-duplicates and their effect, if there are any."""
        if not self.near_duplicate_counts:
            return Description()
        line = text(
            'model.near_duplicates',
            photos=count_photos(sum(self.near_duplicate_counts.values())),
            classes=join_first(self.near_duplicate_counts, 3),
        )
        return Description((line,), text('model.near_duplicates_explained'))


@dataclass(frozen=True)
class Weights:
    """Pretrained weights.

    Args:
        name (str): Name in timm, or file name without its ending.
        source (str): Path or ``timm://NAME``.
        network (str): Type and sizes of the network. Defaults to '': unknown,
            as in a record of an earlier version.
    """

    name: str
    source: str
    network: str = ''

    def describe(self) -> str:
        """Describe name and network."""
        return f'{self.name} ({self.network})' if self.network else self.name


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

    def describe(self) -> Description:
        """Describe reduction, image size, omitted and used layers."""
        described, details = describe_variant(self.variant), []
        if self.depth and self.layers and self.layers[-1] < self.depth - 1:
            number = self.layers[-1] + 1
            described = text(
                'model.first_layers',
                model=described,
                number=number,
                depth=self.depth,
            )
        if self.method:
            details.append(text('model.keep_rate_explained'))
        if self.layers:
            layers = ', '.join(map(str, self.layers))
            details.append(text('model.layers', layers=layers))
        return Description((described,), ' '.join(details))


def describe_variant(variant: Variant) -> str:
    """Describe a candidate: its reduction method and image size."""
    if variant.method:
        return text(
            'model.reduced',
            method=variant.method,
            keep_rate=variant.keep_rate,
            size=variant.img_size,
        )
    key = 'model.full_vit' if variant.out_type else 'model.full_network'
    return text(key, size=variant.img_size)


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

    def describe(self) -> Description:
        """Describe the threshold and its false-alarm rate."""
        if self.score != NEAREST:
            return Description((text('model.no_threshold'),))
        rate = percent(self.false_alarms) + interval(self.low, self.high)
        return Description(
            (
                text('model.threshold', threshold=f'{self.threshold:.3f}'),
                text('model.false_alarms', rate=rate),
                text('model.similar_classes'),
            ),
            text('model.threshold_explained'),
        )
