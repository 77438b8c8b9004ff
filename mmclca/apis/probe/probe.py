# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Linear probe: a classifier on the frozen features of a model."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from os import PathLike

import torch
from mmengine.config import Config
from mmengine.model import BaseModel
from torch import Tensor, nn

from mmclca.checkpoints.gate.photo_table import PhotoFiles, compute_sha256
from mmclca.datasets.photos import LabeledImages
from mmclca.errors import Error
from mmclca.evaluation.open_set import image_settings, model_digest
from mmclca.models.classifiers import extract_feature
from mmclca.models.heads import (
    drop_references,
    get_feature_subsets,
    last_linear,
    rebuild_head,
    set_last_linear,
)
from mmclca.utils.messages import track

from ..features import (
    FeatureCache,
    Outputs,
    drop_unreadable,
    feature_batches,
    require_readable,
)
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

MODEL_PARTS = ('backbone', 'neck', 'head')
# head settings without effect on the input features of its last layer
LAST_LAYER_KEYS = ('num_classes', 'loss', 'topk', 'cal_acc')


@dataclass(frozen=True)
class PhotoView:
    """View of an image: its zoomed center, or the image after turns."""

    zoom: float = 1.0
    quarters: int = 0


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
        self.batch_size = batch_size
        self._photo_files = photo_files or PhotoFiles()
        self._inferencer = TokenReductionInferencer(
            self.model, classes=self.classes
        )
        key = feature_key(self.model)
        names = {PhotoView(): key}
        names |= {PhotoView(zoom): f'{key}-{zoom:.3f}' for zoom in zooms}
        names |= {PhotoView(quarters=x): f'{key}-turned-{x}' for x in quarters}
        self._caches = {
            view: FeatureCache(features_dir, name, width)
            for view, name in names.items()
        }

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
        return self._extract_view(self._find_digests(paths), PhotoView())

    def views(self, paths: Sequence[str | PathLike]) -> Outputs:
        """Extract the features (N, V, D) of all training views.

        Works like :meth:`features`; the first view is the whole image, then
        follow zoomed and turned views.

        Args:
            paths (Sequence[str | Path]): Image files.
        """
        images = self._find_digests(paths)
        views = [self._extract_view(images, view) for view in self._caches]
        unread = views[0][1]
        return torch.stack([features for features, _ in views], dim=1), unread

    def _find_digests(
        self, paths: Sequence[str | PathLike]
    ) -> list[tuple[str, str | None]]:
        """Return path and SHA-256 of each image, None if unreadable."""
        return [
            (path, self._photo_files.sha256.get(path) or compute_sha256(path))
            for path in map(str, paths)
        ]

    def _extract_view(
        self, images: list[tuple[str, str | None]], view: PhotoView
    ) -> Outputs:
        """Return the features of a view, and cache new ones."""
        cache = self._caches[view]
        paths = [path for path, _ in images]
        digests = [digest for _, digest in images]
        new = [i for i, digest in enumerate(digests) if digest not in cache]
        closed = [
            paths[i] for i in new if not self._photo_files.may_open(paths[i])
        ]
        if closed:
            raise Error(
                f'features of {len(closed)} images are missing, such as '
                f'{closed[0]}; run fit again with `overwrite=True`'
            )
        # their features would be stored under the digest of another content
        changed = [
            paths[i] for i in new if self._photo_files.is_changed(paths[i])
        ]
        if changed:
            raise Error(
                f'{len(changed)} photos have changed since the fit, or are '
                f'missing, such as {changed[0]}; restore them, or run fit '
                'again with `overwrite=True`'
            )
        unread = self._keep_features(paths, digests, new, view) if new else {}
        require_readable(paths, unread)
        features = [cache[x] for i, x in enumerate(digests) if i not in unread]
        return torch.stack(features), unread

    def _keep_features(
        self,
        paths: list[str],
        digests: list[str | None],
        new: list[int],
        view: PhotoView,
    ) -> dict[int, str]:
        """Cache features of the images at the positions ``new``.

        Return the reasons for unreadable ones by position.
        """
        unread: dict[int, str] = {}
        batches = feature_batches(
            self._inferencer,
            [paths[i] for i in new],
            partial(extract_turned, self.model, view.quarters),
            self.batch_size,
            view.zoom,
        )
        for batch, (features, reasons) in enumerate(batches):
            start = batch * self.batch_size
            unread |= {new[n]: reason for n, reason in reasons.items()}
            positions = new[start : start + self.batch_size]
            readable = [digests[i] for i in positions if i not in unread]
            # readable images have a digest
            self._caches[view].add(readable, features)  # type: ignore[arg-type]
        return unread

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


def extract_turned(model: BaseModel, quarters: int, images: Tensor) -> Tensor:
    """Extract features of preprocessed images (B, 3, H, H) after turns."""
    if quarters:
        images = images.rot90(quarters, dims=(2, 3))
    return extract_feature(model, images, feature='pre_logits')


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
