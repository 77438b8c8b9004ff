# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Linear probe: a classifier on the frozen features of a model."""

from collections.abc import Sequence
from functools import partial
from os import PathLike

import torch
from mmengine.config import Config
from mmengine.model import BaseModel
from torch import Tensor, nn

from mmclca.checkpoints.gate.photo_table import PhotoFiles
from mmclca.datasets.photos import LabeledImages
from mmclca.errors import Error
from mmclca.evaluation.open_set import image_settings, model_digest
from mmclca.models.heads import (
    drop_references,
    get_feature_subsets,
    last_linear,
    rebuild_head,
    set_last_linear,
)
from mmclca.utils.messages import track

from ..features import FeatureCache, Outputs, drop_unreadable
from ..inferencer import TokenReductionInferencer
from ..loading import (
    config_and_weights,
    last_layer_names,
    load_classifier,
    save_classifier,
)
from ..threshold_choice import accuracy_by_name, check_known, common_files
from .data import LabeledFeatures
from .folds import OutOfFold, fit_chosen
from .settings import FIVE_FOLDS, RIDGE, ClassifierSettings, FoldSettings
from .solvers import LinearClassifier
from .view_features import PhotoView, ViewFeatures

MODEL_PARTS = ('backbone', 'neck', 'head')
# head settings without effect on the input features of its last layer
LAST_LAYER_KEYS = ('num_classes', 'loss', 'topk', 'cal_acc')


class Probe:
    """Linear probe on the features of a frozen model.

    Only the last layer of the head is fitted, in seconds. The result is a
    model like any other: all tools accept its checkpoint, and training can
    start from it.

    Args:
        model (Config | str | Path): Config of a classifier, its path or its
            name; or a checkpoint with its config.
        pretrained (str | Path, optional): Path or URL of the weights, or
            ``timm://NAME``; the last layer may be missing. Defaults to None:
            the weights in the checkpoint, or ``load_from`` in the config.
        device (str | torch.device, optional): Device of the model. Defaults to
            None: a GPU if available.
        features_dir (str | Path, optional): Folder to cache features, so that
            each image passes through the model only once. Defaults to None:
            cached in memory.
        batch_size (int): Images per batch. Defaults to 32.
        zooms (Sequence[float]): Zoom factors of additional training views,
            center crops with 1 / zoom times the height and width. Defaults to
            ().
        quarters (Sequence[int]): Quarter turns of additional training views,
            counterclockwise. Defaults to ().
        photo_files (PhotoFiles, optional): SHA-256 by path, if known, and
            whether to open each file. Features of closed files must be in
            ``features_dir``. Defaults to None: all files may be opened.

    Attributes:
        model (BaseModel): The model; after :meth:`fit` with the classifier.
        classes (list[str]): Class names.
        view_features (ViewFeatures): Features of images and their views.

    Raises:
        CheckpointError: If the weights belong to another model.
        Error: If weights are missing outside the last layer, or the head
            does not end in a linear layer.

    Example:
        >>> from mmclca.apis import Probe
        >>> probe = Probe('my_config.py', 'deit_tiny_patch16_224.pth')
        >>> features, unread = probe.features(paths)
        >>> scores = probe.fit(features, labels, ['ash', 'beech'])
        >>> scores.accuracy.mean(), scores.interval()
        >>> probe.save('probe.pth')
    """

    def __init__(
        self,
        model: Config | str | PathLike,
        pretrained: str | PathLike | None = None,
        device: str | torch.device | None = None,
        features_dir: str | PathLike | None = None,
        batch_size: int = 32,
        zooms: Sequence[float] = (),
        quarters: Sequence[int] = (),
        photo_files: PhotoFiles | None = None,
    ):
        config, weights = config_and_weights(model, pretrained)
        weights = weights or config.get('load_from')
        self.model = load_classifier(
            config, weights, device=device, new_last_layer=True
        )
        # refuses unsuitable heads before images are read
        width = get_weight(self.model.head).shape[1]
        drop_references(self.model)  # they belong to other images
        self.classes = self.model._dataset_meta['classes']
        key = feature_key(self.model)
        names = {PhotoView(): key}
        names |= {PhotoView(zoom): f'{key}-{zoom:.3f}' for zoom in zooms}
        names |= {PhotoView(quarters=x): f'{key}-turned-{x}' for x in quarters}
        self.view_features = ViewFeatures(
            TokenReductionInferencer(self.model, classes=self.classes),
            caches={
                view: FeatureCache(features_dir, name, width)
                for view, name in names.items()
            },
            photo_files=photo_files or PhotoFiles(),
            batch_size=batch_size,
        )

    def features(self, paths: Sequence[str | PathLike]) -> Outputs:
        """Extract the input features of the last layer.

        Shows a progress bar for images without cached features.

        Args:
            paths (Sequence[str | Path]): Image files.

        Returns:
            tuple[Tensor, dict[int, str]]: Features (N, D) for readable images,
            and the reason for each unreadable image by position.

        Raises:
            Error: If no image is readable, or features are not finite.
        """
        features, unread = self.view_features.extract(paths, [PhotoView()])
        return features[:, 0], unread

    def views(self, paths: Sequence[str | PathLike]) -> Outputs:
        """Extract the features (N, V, D) of all training views.

        Works like :meth:`features`; the first view is the whole image, then
        follow zoomed and turned views.

        Args:
            paths (Sequence[str | Path]): Image files.
        """
        return self.view_features.extract(paths, [*self.view_features.caches])

    def fit(
        self,
        features: Tensor,
        labels: Tensor | Sequence[int],
        classes: Sequence[str],
        groups: Sequence | None = None,
        classifier: ClassifierSettings = RIDGE,
        folds: FoldSettings = FIVE_FOLDS,
    ) -> OutOfFold:
        """Fit the last layer to all images, and cross-validate it.

        Shows a progress bar.

        Args:
            features (Tensor): Result of :meth:`features`, (N, D), or
                :meth:`views`, (N, V, D).
            labels (Tensor | Sequence[int]): Labels (N,), from 0.
            classes (Sequence[str]): Class names.
            groups (Sequence, optional): Group of each image (N,), such as
                the plant. Each group stays in one fold. Defaults to None.
            classifier (ClassifierSettings): Classifier and class weights, see
                :func:`fit_linear`. Defaults to ridge regression with equal
                image weights.
            folds (FoldSettings): Folds, repeats and seed of the
                cross-validation. Defaults to five folds, repeated five times.

        Returns:
            OutOfFold: The cross-validated scores.

        Raises:
            Error: If there are fewer than two classes, or a class is empty.
        """
        if len(classes) < 2:
            raise Error(
                'a classifier needs images of at least two classes, found '
                f'{len(classes)} ({", ".join(classes)})'
            )
        subsets = get_feature_subsets(self.model.head)
        cross_validated, fitted = fit_chosen(
            LabeledFeatures(features, labels, len(classes), groups, subsets),
            classifier,
            folds,
            partial(track, description='Cross-validation'),
        )
        temperature = cross_validated.temperature
        put_classifier(self.model, fitted, temperature, classes)
        self.classes = list(classes)
        return cross_validated

    def scores(self, features: Tensor) -> Tensor:
        """Compute class scores with the last layer.

        Args:
            features (Tensor): Result of :meth:`features`, (N, D).

        Returns:
            Tensor: Scores before softmax (N, K).
        """
        bias = last_linear(self.model.head).bias.detach()
        last = LinearClassifier(get_weight(self.model.head), bias)
        return last.scores(features).cpu()

    def save(self, path: str | PathLike) -> None:
        """Write the model as a checkpoint for all tools.

        Args:
            path (str | Path): The file; its folder is created.
        """
        save_classifier(self.model, path, self.classes)


def get_weight(head: nn.Module) -> Tensor:
    """Return the weight (K, D) of a head's last layer."""
    return last_linear(head).weight.detach().flatten(1)


def feature_key(model: BaseModel) -> str:
    """Digest a model without its last layer: equal for any classes."""
    parts = model._config.model.to_dict()
    settings = image_settings(model)
    settings.update({name: parts.get(name) for name in MODEL_PARTS})
    for name in ('head', 'preprocessor'):
        part = (settings[name] or {}).items()
        settings[name] = {k: v for k, v in part if k not in LAST_LAYER_KEYS}
    last = last_layer_names(model)
    weights = model.state_dict().items()
    return model_digest(settings, {k: v for k, v in weights if k not in last})


def put_classifier(
    model: BaseModel,
    fitted: LinearClassifier,
    temperature: float,
    classes: Sequence[str],
) -> None:
    """Set a fitted classifier as the last layer of a model and its config.

    Scores are divided by ``temperature``.
    """
    _set_number_of_classes(model, len(classes))
    weight, bias = fitted
    set_last_linear(model.head, weight / temperature, bias / temperature)
    model._dataset_meta = dict(classes=list(classes))


def _set_number_of_classes(model: BaseModel, number: int) -> None:
    """Rebuild the last layer of the head, and keep its other layers."""
    config = model._config
    for settings in (config, config.model):
        if 'num_classes' in (settings.get('data_preprocessor') or {}):
            settings.data_preprocessor.num_classes = number
    last = [name.removeprefix('head.') for name in last_layer_names(model)]
    config.model.head.num_classes = number
    rebuild_head(model, new=last)


def fit_to_images(
    probe: Probe,
    images: LabeledImages,
    classifier: ClassifierSettings,
    folds: FoldSettings,
) -> tuple[LabeledImages, int, OutOfFold]:
    """Fit a probe to labeled images, with the settings of ``Probe.fit``.

    Returns the readable images, without empty classes, the dimension of
    their features, and the cross-validated scores.

    Raises:
        Error: If an image has no class, or see :meth:`Probe.fit`.
    """
    features, unread = probe.views(images.paths)
    images = drop_unreadable(images, unread)
    if None in images.labels:
        nameless = images.paths[images.labels.index(None)]
        raise Error(
            f'{nameless} has no class; put it in a class folder, or pass a '
            'list with labels'
        )
    labels = [label for label in images.labels if label is not None]
    images = images.select_classes(sorted({*labels}))
    cross_validated = probe.fit(
        features,
        [label for label in images.labels if label is not None],
        images.classes,
        images.groups,
        classifier,
        folds,
    )
    return images, features.shape[-1], cross_validated


def accuracy_on(
    probe: Probe, images: LabeledImages, fitted: LabeledImages
) -> tuple[int, float]:
    """Return the number of readable test images, and the accuracy.

    Raises:
        Error: If images have unknown classes or no labels, or are among
            the training images, ``fitted``.
    """
    check_known(images, probe.classes)
    both = common_files(images, fitted)
    if both:
        raise Error(
            f'{len(both)} test images are also training images, such as '
            f'{min(both)}; remove them from one of the sets'
        )
    features, unread = probe.features(images.paths)
    images = drop_unreadable(images, unread)
    right = accuracy_by_name(images, probe.scores(features), probe.classes)
    if right is None:
        raise Error(f'accuracy needs labels; {images.source} has none')
    return len(images.paths), right
