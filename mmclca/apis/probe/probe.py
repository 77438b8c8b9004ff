# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""A classifier on a frozen network, whose features are kept on disk."""

import json
from collections.abc import Container, Sequence
from functools import partial
from hashlib import sha256
from os import PathLike
from pathlib import Path

import torch
from mmengine.config import Config
from mmengine.model import BaseModel
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from mmclca.datasets.photographs import LabeledImages
from mmclca.evaluation.open_set import image_settings, model_digest
from mmclca.models.classifiers import feature_of
from mmclca.models.heads import (
    drop_references,
    last_linear,
    rebuild_head,
    set_last_linear,
)
from mmclca.utils.files import read_bytes, replace_bytes

from ..features import (
    Outputs,
    drop_unreadable,
    feature_batches,
    require_readable,
)
from ..inferencer import TokenReductionInferencer
from ..loading import (
    config_and_weights,
    load_classifier,
    names_of_last,
    save_classifier,
)
from ..threshold_choice import check_known, share_right, shared
from .classifiers import LinearClassifier
from .folds import OutOfFold, fit_chosen

MODEL_PARTS = ('backbone', 'neck', 'head')
# settings that say nothing of what the last layer reads
OF_LAST = ('num_classes', 'loss', 'topk', 'cal_acc')


class FeatureCache(dict):
    """Features of one model by the contents of image files.

    A file of the folder holds those of a batch and is written in one step:
    what was interrupted goes on from there, and several processes may use
    one folder.

    Args:
        folder (str | Path, optional): Where to keep them, in a folder of
            each model. None: in memory alone.
        model (str): What identifies the model, see
            :func:`mmclca.evaluation.open_set.model_digest`.
        width (int): Number of channels of the features.

    Raises:
        ValueError: If features in the folder are not finite.
    """

    def __init__(self, folder: str | Path | None, model: str, width: int):
        super().__init__()
        self._width = width
        self._folder = None if folder is None else Path(folder, model)
        if self._folder is not None:
            for part in sorted(self._folder.glob('*.safetensors')):
                self._read(part)

    def add(self, digests: list[str], features: Tensor) -> None:
        """Keep the features (N, D) of image files, see ``digest_of_file``."""
        self.update(zip(digests, features, strict=True))
        if self._folder is None or not digests:
            return
        facts = dict(digests=json.dumps(digests))
        name = sha256(facts['digests'].encode()).hexdigest()[:16]
        content = save(dict(features=features), facts)
        replace_bytes(self._folder / f'{name}.safetensors', content, False)

    def _read(self, part: Path) -> None:
        try:
            with safe_open(part, 'pt') as file:
                digests = json.loads(file.metadata()['digests'])
                features = file.get_tensor('features')
            if features.shape != (len(digests), self._width):
                raise ValueError(f'features of shape {features.shape}')
        except (KeyError, SafetensorError, TypeError, ValueError):
            return  # not a valid part: compute its features again
        if not features.isfinite().all():
            raise ValueError(f'{part} contains NaN or infinity; remove it')
        self.update(zip(digests, features, strict=True))


def digest_of_file(path: str) -> str | None:
    """SHA-256 of a file, None where it cannot be read."""
    try:
        return sha256(read_bytes(path)).hexdigest()
    except OSError:
        return None


class Probe:
    """A classifier in closed form on the features of a frozen model.

    Only the last layer of the head is fitted, to what the layers before it
    make of the images. That takes seconds, and the result is a model like
    any other: all tools take its checkpoint, and training goes on from it.

    Args:
        model (Config | str | Path): Config of a classifier, its path or its
            name; or a checkpoint that holds its config.
        pretrained (str | Path, optional): Path or address of the weights, or
            ``timm://NAME``, of all but the last layer. Defaults to None: those
            of the checkpoint, or ``load_from`` of the config.
        device (str | torch.device, optional): Where to run the model.
            Defaults to None: on a GPU if there is one.
        features_dir (str | Path, optional): Folder to keep features in, so
            that no image goes through the model twice. Defaults to None: they
            are kept in memory.
        batch_size (int): Images at a time. Defaults to 32.
        zooms (Sequence[float]): Of further views of the images to learn from,
            of whose height and width only the middle is seen: 2 for a half.
            Defaults to (): there are none.
        digests (dict[str, str]): SHA-256 of image files by path, as far as
            known. Defaults to {}.
        unopened (Container[str]): Paths of images that must not be opened;
            their features are in ``features_dir``. Defaults to ().

    Attributes:
        model (BaseModel): The model; after :meth:`fit` with the classifier.
        classes (list[str]): Names of its classes.

    Raises:
        CheckpointError: If the weights are of another model.
        ValueError: If there are no weights, or not all but those of the last
            layer; if the head has no linear last layer.

    Example:
        >>> from mmclca.apis import Probe
        >>> probe = Probe('my_config.py', 'deit_tiny_patch16_224.pth')
        >>> features, unread = probe.features(paths)
        >>> found = probe.fit(features, labels, ['ash', 'beech'])
        >>> found.accuracy.mean(), found.interval()
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
        digests: dict[str, str] = {},
        unopened: Container[str] = (),
    ):
        config, weights = config_and_weights(model, pretrained)
        weights = weights or config.get('load_from')
        self.model = load_classifier(
            config, weights, device=device, new_last_layer=True
        )
        # refuses before images are read
        width = last_linear(self.model.head).weight[0].numel()
        drop_references(self.model)  # they are of other images
        self.classes = self.model._dataset_meta['classes']
        self.batch_size = batch_size
        self._digests, self._unopened = digests, unopened
        self._inferencer = TokenReductionInferencer(
            self.model, classes=self.classes
        )
        key = feature_key(self.model)
        self._caches = {1.0: FeatureCache(features_dir, key, width)}
        for zoom in zooms:
            name = f'{key}-{zoom:.3f}'
            self._caches[zoom] = FeatureCache(features_dir, name, width)

    def features(self, paths: Sequence[str | PathLike]) -> Outputs:
        """Extract what the last layer is to read, of image files.

        With a progress bar, but for images whose features are kept.

        Args:
            paths (Sequence[str | Path]): Image files.

        Returns:
            tuple[Tensor, dict[int, str]]: Features (N, D) of the images that
            can be read, and by position why others cannot.

        Raises:
            ValueError: If none can be read, or features are not finite.
        """
        return self._view(*self._with_digests(paths), 1.0)

    def views(self, paths: Sequence[str | PathLike]) -> Outputs:
        """Do as :meth:`features` for all views of images to learn from.

        Features are (N, V, D), those of the whole image first.
        """
        given = self._with_digests(paths)
        found = [self._view(*given, zoom) for zoom in self._caches]
        return torch.stack([x for x, _ in found], dim=1), found[0][1]

    def _with_digests(self, paths) -> tuple[list[str], list[str | None]]:
        paths, known = [str(path) for path in paths], self._digests
        return paths, [known.get(x) or digest_of_file(x) for x in paths]

    def _view(self, paths, digests, zoom) -> Outputs:
        cache = self._caches[zoom]
        new = [i for i in range(len(paths)) if digests[i] not in cache]
        if lost := [paths[i] for i in new if paths[i] in self._unopened]:
            raise ValueError(
                f'features of {len(lost)} images are missing, such as '
                f'{lost[0]}; run fit again with --overwrite'
            )
        unread = self._keep_features(paths, digests, new, zoom) if new else {}
        require_readable(paths, unread)
        found = [cache[x] for i, x in enumerate(digests) if i not in unread]
        return torch.stack(found), unread

    def _keep_features(self, paths, digests, new, zoom) -> dict[int, str]:
        """Put features of images into a cache; why others are not."""
        unread = {}
        batches = feature_batches(
            self._inferencer,
            [paths[i] for i in new],
            partial(feature_of, self.model, stage='pre_logits'),
            self.batch_size,
            zoom,
        )
        for batch, (features, reasons) in enumerate(batches):
            start = batch * self.batch_size
            unread |= {new[n]: reason for n, reason in reasons.items()}
            positions = new[start : start + self.batch_size]
            read = [digests[i] for i in positions if i not in unread]
            self._caches[zoom].add(read, features)
        return unread

    def fit(
        self,
        features: Tensor,
        labels: Tensor | Sequence[int],
        classes: Sequence[str],
        classifier: str = 'ridge',
        class_weights: str | None = None,
        **folds,
    ) -> OutOfFold:
        """Fit the last layer to all images, and measure it by folds.

        Args:
            features (Tensor): Of :meth:`features`, (N, D), or :meth:`views`,
                (N, V, D).
            labels (Tensor | Sequence[int]): Their classes (N,), from 0.
            classes (Sequence[str]): Names of the classes.
            classifier (str): 'ridge', 'lda', 'logistic' or 'ncm', see
                :func:`fit_linear`. Defaults to 'ridge'.
            class_weights (str, optional): See :func:`out_of_fold`. Defaults
                to None.
            **folds: ``groups``, ``folds``, ``repeats``, ``seed`` and
                ``progress``, see there.

        Returns:
            OutOfFold: How good it is on images that it does not know.

        Raises:
            ValueError: If there is one class only, a class has no image, or
                a name of a setting is not known.
        """
        if len(classes) < 2:
            raise ValueError(
                'a classifier needs images of at least two classes, found '
                f'{len(classes)} ({", ".join(classes)})'
            )
        settings = features, labels, len(classes), classifier
        found, fitted = fit_chosen(
            *settings, class_weights=class_weights, **folds
        )
        put_classifier(self.model, fitted, found.temperature, classes)
        self.classes = list(classes)
        return found

    def scores(self, features: Tensor) -> Tensor:
        """Class scores of images by the last layer.

        Args:
            features (Tensor): Of :meth:`features`, (N, D).

        Returns:
            Tensor: Scores before softmax (N, K).
        """
        last = last_linear(self.model.head)
        last = LinearClassifier(
            last.weight.detach().flatten(1), last.bias.detach()
        )
        return last.scores(features).cpu()

    def save(self, path: str | PathLike) -> None:
        """Write the model as a checkpoint, which all tools take.

        Args:
            path (str | Path): The file; its folder is made.
        """
        save_classifier(self.model, path, self.classes)


def feature_key(model: BaseModel) -> str:
    """Digest all of a model but its last layer: the same for any classes."""
    parts = model._config.model.to_dict()
    settings = image_settings(model)
    settings.update({name: parts.get(name) for name in MODEL_PARTS})
    for name in ('head', 'preprocessor'):
        part = (settings[name] or {}).items()
        settings[name] = {k: v for k, v in part if k not in OF_LAST}
    last = names_of_last(model)
    weights = model.state_dict().items()
    return model_digest(settings, {k: v for k, v in weights if k not in last})


def put_classifier(
    model: BaseModel,
    fitted: LinearClassifier,
    temperature: float,
    classes: Sequence[str],
) -> None:
    """Make a fitted classifier the last layer of a model and its config."""
    _set_number_of_classes(model, len(classes))
    weight, bias = fitted
    set_last_linear(model.head, weight / temperature, bias / temperature)
    model._dataset_meta = dict(classes=list(classes))


def _set_number_of_classes(model: BaseModel, number: int) -> None:
    """Replace the last layer of the head; the rest of it stays."""
    config = model._config
    for settings in (config, config.model):
        if 'num_classes' in (settings.get('data_preprocessor') or {}):
            settings.data_preprocessor.num_classes = number
    last = [name.removeprefix('head.') for name in names_of_last(model)]
    config.model.head.num_classes = number
    rebuild_head(model, new=last)


def fit_to_images(
    probe: Probe, images: LabeledImages, **options
) -> tuple[LabeledImages, int, OutOfFold]:
    """Fit a probe to labeled images, with the options of ``Probe.fit``.

    Returns the readable images, the dimension of their features, and the
    cross-validated predictions.
    """
    features, unread = probe.views(images.paths)
    images = drop_unreadable(images, unread)
    if None in images.labels:
        nameless = images.paths[images.labels.index(None)]
        raise ValueError(
            f'{nameless} has no class; put it in a class folder, or pass a '
            'list with labels'
        )
    images = images.of_classes(sorted({*images.labels}))
    known = features, images.labels, images.classes
    found = probe.fit(*known, groups=images.groups, **options)
    return images, features.shape[-1], found


def accuracy_on(
    probe: Probe, images: LabeledImages, fitted: LabeledImages
) -> tuple[int, float]:
    """Return the number of readable test images and the accuracy."""
    check_known(images, probe.classes)
    both = shared(images, fitted)
    if both:
        raise ValueError(
            f'{len(both)} test images are also training images, such as '
            f'{min(both)}; remove them from one of the sets'
        )
    features, unread = probe.features(images.paths)
    images = drop_unreadable(images, unread)
    right = share_right(images, probe.scores(features), probe.classes)
    if right is None:
        raise ValueError(f'accuracy needs labels; {images.source} has none')
    return len(images.paths), right
