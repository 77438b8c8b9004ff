# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Record of a fitted model, ``fit.json``."""

from dataclasses import asdict, dataclass, field, fields, replace
from datetime import datetime, timezone
from typing import Any, Literal

from mmclca.apis.probe import CurvePoint
from mmclca.checkpoints.digests import digest
from mmclca.checkpoints.gate.json_parsing import parse_record
from mmclca.datasets.photos import PhotoCheck
from mmclca.errors import Error
from mmclca.evaluation.fusion import PlantFigures
from mmclca.utils.provenance import versions
from mmclca.version import __version__

from .accuracy_parts import Estimate, Measurement, Training
from .cost_parts import ComparedWeights, PhotoCost
from .guarantee import Guarantee
from .options import FitOptions
from .record_parts import (
    Model,
    Photos,
    ThresholdEstimate,
    Weights,
    require_part,
)
from .shortcut_record import Shortcut

UNEVEN = 10  # ratio of the largest to the smallest class


@dataclass(frozen=True)
class FitCall:
    """Photos and options of a fit that a resumed one must have, too."""

    photos: str | None = None
    options: FitOptions = FitOptions()

    def to_json(self) -> dict[str, Any]:
        """Return the call as one JSON object."""
        return dict(photos=self.photos, **self.options.recorded)

    @classmethod
    def from_json(cls, content: Any) -> 'FitCall':
        """Convert a JSON object; raise an Error if it is wrong."""
        if not isinstance(content, dict):
            raise Error(f'call is {content!r:.60}, expected a JSON object')
        options = {**content}
        photos = options.pop('photos', None)
        if not isinstance(photos, str | None):
            raise Error(f'call.photos is {photos!r:.60}, expected str')
        return cls(photos, parse_record(FitOptions, options, 'call'))

    def list_differences(self, other: 'FitCall') -> list[str]:
        """Describe the options changed by another call."""
        options = self.to_json()
        return [
            f'{name} {options[name]!r} (now {value!r})'
            for name, value in other.to_json().items()
            if options[name] != value
        ]


@dataclass(frozen=True)
class FitRecord:
    """Facts about a fitted model; parts of later steps are None.

    Args:
        call (FitCall): Photos and options.
        photos (Photos): Photos, classes and problems.
        version (str): The mmclca version.
        name (str, optional): Title of the report.
        language (str, optional): Language of the report; None: English.
        table (int, optional): Checksum of photographs.csv.
        weights (Weights, optional): Pretrained weights.
        model (Model, optional): Selected model.
        considered (list[ComparedWeights]): Compared weights.
        cost (PhotoCost, optional): Cost per photo.
        probe (Estimate, optional): Linear probe.
        threshold (ThresholdEstimate, optional): Threshold for unknown
            classes.
        shortcuts (list[Shortcut]): Accuracies without a look at the plant.
        guarantee (Guarantee, optional): Sizes of prediction sets.
        learning_curve (list[CurvePoint]): Accuracy by photos per class.
        same_days (Measurement, optional): Accuracy of the linear probe if
            training and test share days; only if ``probe`` was tested on
            other days.
        plants (PlantFigures, optional): Linear probe with several photos per
            plant; only if groups are plants with several photos.
        training (Training, optional): Fine-tuning.
        test (Measurement, optional): Accuracy on photos in val and test.
        final (str, optional): 'probe', or 'trained' if the fine-tuned model
            was kept.
        versions (dict[str, str]): Library versions.
        date (str): Start.
        seconds (float): Duration.
    """

    call: FitCall = FitCall()
    photos: Photos = field(default_factory=Photos)
    version: str = __version__
    name: str | None = None
    language: str | None = None
    table: int | None = None
    weights: Weights | None = None
    model: Model | None = None
    considered: list[ComparedWeights] = field(default_factory=list)
    cost: PhotoCost | None = None
    probe: Estimate | None = None
    threshold: ThresholdEstimate | None = None
    shortcuts: list[Shortcut] = field(default_factory=list)
    guarantee: Guarantee | None = None
    learning_curve: list[CurvePoint] = field(default_factory=list)
    same_days: Measurement | None = None
    plants: PlantFigures | None = None
    training: Training | None = None
    test: Measurement | None = None
    final: Literal['probe', 'trained'] | None = None
    versions: dict[str, str] = field(default_factory=dict)
    date: str = ''
    seconds: float = 0

    @classmethod
    def from_call(cls, call: FitCall, checked: PhotoCheck) -> 'FitRecord':
        """Create the record of a call, before the first step."""
        date = datetime.now(timezone.utc).isoformat(timespec='seconds')
        record = cls(call=call, versions=versions(), date=date)
        return record.with_photos(checked)

    @classmethod
    def from_json(cls, content: dict[str, Any]) -> 'FitRecord':
        """Convert the content of fit.json.

        Raises:
            Error: If a key is unknown or a value has a wrong type.
        """
        parts = {**content}
        call = parts.get('call')
        parts['call'] = FitCall.from_json({} if call is None else call)
        digest_of_photos = parts.pop('photos', '')
        photos = {
            item.name: parts.pop(item.name)
            for item in fields(Photos)
            if item.name in parts
        }
        # None in drafts of earlier versions
        photos = {key: x for key, x in photos.items() if x is not None}
        photos['digest'] = digest_of_photos
        parts['photos'] = parse_record(Photos, photos)
        return parse_record(cls, parts)

    def to_json(self) -> dict[str, Any]:
        """Return the content of fit.json.

        Photos are not an inner object: ``photos`` is their digest.
        """
        content = asdict(self)
        photos = content.pop('photos')
        content.pop('call')
        if not photos['spreads']:  # nothing is known
            photos.pop('spreads')
        for name in (
            'language',
            'guarantee',
            'same_days',
            'plants',
            'shortcuts',
        ):
            if not content[name]:
                content.pop(name)
        return dict(
            version=content.pop('version'),
            name=content.pop('name'),
            call=self.call.to_json(),
            photos=photos.pop('digest'),
            **photos,
            **content,
        )

    def with_photos(self, checked: PhotoCheck) -> 'FitRecord':
        """Replace the facts about photos."""
        images = checked.photos
        rows = [images.paths, images.labels, images.classes]
        rows += [images.groups, images.splits]
        return replace(
            self,
            photos=replace(
                self.photos,
                digest=digest(rows),
                source=images.source,
                classes=list(images.classes),
                counts=images.select(images.to_train()).counts(),
                problems=checked.list_problems(),
                spreads=[
                    spread
                    for spread in checked.spreads
                    if spread.kind != 'group' or self.is_grouped
                ],
            ),
        )

    @property
    def estimate(self) -> Estimate:
        """Linear probe, or an Error if it is missing."""
        return require_part(self.probe, 'probe')

    @property
    def best(self) -> Measurement | Estimate:
        """Most reliable measurement of the accuracy.

        On photos in val and test folders, else across days for the probe,
        else on the hold-out set of a fine-tuned model, else cross-validated
        for the probe.
        """
        if self.test is not None:
            return self.test
        if self.is_across_days:
            return self.estimate
        if self.final == 'trained' and self.training is not None:
            return self.training.finetune_val or self.estimate
        return self.estimate

    @property
    def is_across_days(self) -> bool:
        """Whether the probe was tested on other days than trained."""
        return self.same_days is not None

    @property
    def untested_classes(self) -> list[str]:
        """Classes that a test by days or named groups leaves out."""
        if not (self.is_across_days or self.is_grouped):
            return []
        recalls = self.estimate.per_class.items()
        return [name for name, x in recalls if x.recall is None]

    @property
    def is_representative(self) -> bool:
        """Whether ``best`` may hold for new photos, so that it is shown first.

        It does not if the model may tell days, cameras or folders apart
        instead of classes, or if groups leave classes untested. Photos in val
        and test, and named groups, are the choice of the user.
        """
        if self.test is not None:
            return True
        if self.untested_classes:
            return False
        return self.is_grouped or not self.photos.coinciding

    @property
    def is_measured(self) -> bool:
        """Whether ``best`` is a measurement of the saved model.

        False for a fine-tuned model with too few photos to measure it: its
        accuracy is that of the linear probe.
        """
        return self.final != 'trained' or self.best is not self.probe

    @property
    def is_grouped(self) -> bool:
        """Whether the user named groups, so that new ones are tested."""
        return bool(self.call.options.groups)

    @property
    def is_uneven(self) -> bool:
        """Whether class sizes differ by the factor ``UNEVEN`` or more."""
        counts = [n for n in self.photos.counts.values() if n]
        return max(counts) >= UNEVEN * min(counts)

    @property
    def suspicious_shortcuts(self) -> list[Shortcut]:
        """Shortcuts that are far above chance."""
        accuracy = self.estimate.accuracy
        return [x for x in self.shortcuts if x.is_far_above_chance(accuracy)]

    def list_differences(self, other: 'FitRecord') -> list[str]:
        """Describe the options or photos changed by another record."""
        differences = self.call.list_differences(other.call)
        if not differences and self.photos.digest != other.photos.digest:
            before, now = (
                sum(x.photos.counts.values()) for x in (self, other)
            )
            return [f'{before} photos (now {now}, or different ones)']
        return differences

    def check_complete(self) -> None:
        """Raise an Error if a part of a complete fit is missing."""
        for name in ('weights', 'model', 'cost', 'probe'):
            require_part(getattr(self, name), name)
        if not any(self.photos.counts.values()):
            raise Error('counts has no photos')
        for point in self.learning_curve:
            if point.photos < 1 or not 0 <= point.low <= point.accuracy <= 1:
                raise Error(f'learning_curve has the point {point}')
