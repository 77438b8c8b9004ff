# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Inputs for the steps of a fit: photos, weights, selected model."""

from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import torch
from mmengine.config import Config
from torch import Tensor

from mmclca.apis import Probe
from mmclca.apis.loading import config_and_weights
from mmclca.apis.probe import ClassifierSettings
from mmclca.datasets.photos import LabeledImages, PhotoCheck
from mmclca.errors import Error
from mmclca.models import Variant

from .candidates import choose_candidate
from .fit_folder import FitFolder
from .model_config import build_config
from .options import FitOptions
from .record import FitRecord
from .record_parts import Model, Weights, require_part
from .weights import PIXELS, PretrainedWeights, find_weights

# after the center crop, zoomed views show 75 and 60% of height and width;
# with more than MAX_PHOTOS_FOR_CROPS photos they take long and gain less
CROP_ZOOMS, MAX_PHOTOS_FOR_CROPS = (7 / 6, 35 / 24), 300


@dataclass(frozen=True)
class Plan:
    """Inputs of all steps.

    Args:
        options (FitOptions): Options, with the selected weights.
        files (FitFolder): Model folder.
        checked (PhotoCheck): Photos.
        pretrained (PretrainedWeights): Pretrained weights.
        variant (Variant): Selected model.
        config (Config): Its config, with the classes of the photos.
        device (str): Device.
        budgeted_cost (float, optional): Cost in the unit of the budget.
    """

    options: FitOptions
    files: FitFolder
    checked: PhotoCheck
    pretrained: PretrainedWeights
    variant: Variant
    config: Config
    device: str
    budgeted_cost: float | None = None

    @cached_property
    def training_photos(self) -> LabeledImages:
        """Training photos."""
        photos = self.checked.photos
        return photos.select(photos.to_train())

    @cached_property
    def test(self) -> LabeledImages:
        """Photos in val and test folders."""
        return self.checked.photos.without({*self.training_photos.paths})

    @property
    def tests_other_days(self) -> bool:
        """Whether the probe is tested on other days than trained.

        It is if each class has several days, unless the user named groups or
        test photos.
        """
        is_chosen = bool(self.options.groups or len(self.test))
        return not is_chosen and any(
            spread.kind == 'day' and spread.is_across
            for spread in self.checked.spreads
        )

    @property
    def adds_photos(self) -> bool:
        """Whether photos are added to those of a model."""
        return bool(self.checked.files.listed_paths)

    @property
    def zooms(self) -> tuple[float, ...]:
        """Zoom factors of further views, if there are few training photos."""
        has_few_photos = len(self.training_photos) <= MAX_PHOTOS_FOR_CROPS
        return CROP_ZOOMS if has_few_photos else ()

    @property
    def quarters(self) -> tuple[int, ...]:
        """Quarter turns of further views."""
        return (1, 2, 3) if self.options.any_direction else ()

    @cached_property
    def probe(self) -> Probe:
        """Probe on the pretrained backbone, with cached features."""
        return self.build_probe(
            self.config, self.pretrained.source, self.files.features
        )

    def build_probe(
        self,
        model: Config | Path,
        weights: str | None = None,
        features: Path | None = None,
    ) -> Probe:
        """Build a probe on a model, with features stored in a folder."""
        return Probe(
            model,
            weights,
            self.device,
            features,
            zooms=self.zooms,
            quarters=self.quarters,
            photo_files=self.checked.files,
        )

    @cached_property
    def views(self) -> Tensor:
        """Pretrained features (N, V, D) of training photos and their views.

        After Ctrl-C, the message of the ``KeyboardInterrupt`` tells how many
        are saved.
        """
        try:
            return self.probe.views(self.training_photos.paths)[0]
        except KeyboardInterrupt:
            raise KeyboardInterrupt(
                f'{self.saved_features:.0%} of the features are saved in '
                f'{self.files.features}.'
            ) from None

    @property
    def saved_features(self) -> float:
        """Saved share of the features of training photos, 0 to 1."""
        paths = self.training_photos.paths
        return self.probe.view_features.measure_share(paths)

    def select_references(self, views: Tensor) -> Tensor:
        """Select features (N, R, D) of whole photos from views (N, V, D).

        The first are for the photos as they are, the rest for turned ones.
        """
        number = len(self.quarters)
        turned = views[:, views.shape[1] - number :]
        return torch.cat([views[:, :1], turned], dim=1)

    def with_groups(self, checked: PhotoCheck) -> 'Plan':
        """Return the plan with other groups of the same photos."""
        plan = replace(self, checked=checked)
        for name in ('probe', 'views'):  # do not depend on the groups
            if name in vars(self):
                vars(plan)[name] = vars(self)[name]
        return plan

    @property
    def classifier(self) -> ClassifierSettings:
        """Ridge regression, with the class weights of the options."""
        return ClassifierSettings('ridge', self.options.class_weights)

    @property
    def weights(self) -> Weights:
        """Pretrained weights in the record."""
        pretrained = self.pretrained
        return Weights(pretrained.name, pretrained.source, pretrained.network)

    @property
    def model(self) -> Model:
        """Selected model in the record."""
        layers = self.config.model.backbone.get('out_indices')
        keep_rate = self.variant.keep_rate
        return Model(
            method=self.variant.method,
            keep_rate=keep_rate if isinstance(keep_rate, float) else 1.0,
            img_size=require_part(self.variant.img_size, 'img_size'),
            out_type=self.variant.out_type,
            layers=None if layers is None else tuple(layers),
            depth=self.pretrained.depth,
        )


def make_plan(
    files: FitFolder,
    record: FitRecord,
    checked: PhotoCheck,
    options: FitOptions,
) -> Plan:
    """Find the weights and select the model.

    A resumed fit keeps the recorded model, since a latency budget could
    select another one in each run. If known photos must not be opened, the
    network is read from the model folder.

    Args:
        files (FitFolder): Model folder.
        record (FitRecord): Record, of an earlier call if it is resumed.
        checked (PhotoCheck): Photos.
        options (FitOptions): Options, with one file of weights.

    Raises:
        Error: If the device or weights cannot be used, or no model is within
            the budget.
    """
    device = check_device(options.device)
    num_classes, cost = len(checked.photos.classes), None
    if checked.files.listed_paths:
        variant = require_part(record.model, 'model').variant
        pretrained, config = _read_network(files, record)
        return Plan(
            options, files, checked, pretrained, variant, config, device
        )
    ((weights, arch),) = options.pair_weights()
    pretrained = find_weights(weights, options.pixels, arch)
    if record.model is not None:
        variant = record.model.variant
    else:
        variant, cost = choose_candidate(
            pretrained, num_classes, options, device
        )
    config = build_config(pretrained, variant, num_classes)
    return Plan(
        options, files, checked, pretrained, variant, config, device, cost
    )


def list_labels(photos: LabeledImages) -> list[int]:
    """Return labels of photos, which must all have one."""
    return [label for label in photos.labels if label is not None]


def check_device(device: str | None) -> str:
    """Return a device, a GPU by default; raise an Error if it is missing."""
    if device is None:
        return 'cuda' if torch.cuda.is_available() else 'cpu'
    try:
        torch.empty(0, device=device)
    except (AssertionError, NotImplementedError, RuntimeError) as error:
        raise Error(f'device {device!r} cannot be used: {error}') from error
    return device


def _read_network(
    files: FitFolder, record: FitRecord
) -> tuple[PretrainedWeights, Config]:
    """Read the network from the model folder only.

    The weights in fit.json are not opened: a folder from elsewhere may name
    any file or address.
    """
    config, _ = config_and_weights(files.probe, None)
    backbone = config.model.backbone.to_dict()
    depth = require_part(record.model, 'model').depth
    if depth is not None:  # some models omit the last layers
        backbone.pop('depth', None)
        if isinstance(backbone['arch'], dict):
            backbone['arch'] |= dict(num_layers=depth)
    pretrained = PretrainedWeights(
        require_part(record.weights, 'weights').name,
        str(files.probe),
        backbone,
        PIXELS['imagenet'],
        notes=(),
    )
    return pretrained, config
