# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Models for the page, with their accuracy and similar photos."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, lru_cache
from os import PathLike
from pathlib import Path
from typing import NamedTuple

import torch
from PIL import Image

from mmclca.apis import TokenReductionInferencer
from mmclca.apis.answers import CalibratedSets, SetRule
from mmclca.apis.gallery import Gallery
from mmclca.apis.neighbors import Search, look_up
from mmclca.checkpoints.gate.photo_table import PhotoFiles, PhotoRow
from mmclca.checkpoints.model_folder import damaged_file_errors, is_fitted
from mmclca.datasets.decoding import UndecodedError
from mmclca.datasets.photos import LabeledImages
from mmclca.errors import Error
from mmclca.fitting.fit_folder import FitFolder
from mmclca.fitting.pictures import upright
from mmclca.fitting.plants import Dependence, read_dependence
from mmclca.fitting.record import FitRecord
from mmclca.fitting.wording import count_classes
from mmclca.languages import text
from mmclca.models import as_reducible
from mmclca.models.classifiers import extract_feature
from mmclca.models.heads import NearestHead
from mmclca.utils.messages import join_first

from .photos import make_preview
from .result import describe_result
from .variants import Variants

NUM_SIMILAR = 8
SURE = 95  # guaranteed share of photos in percent


class ModelVersion(NamedTuple):
    """Model on the disk: its folder, and when it was written.

    Args:
        folder (Path): Folder with the model folder ``model``.
        time (int): Time in nanoseconds.
        name (str): Name of the model.
    """

    folder: Path
    time: int
    name: str


class SimilarPhoto(NamedTuple):
    """Similar training photo, as in a ``gr.Gallery``.

    Args:
        picture (Image.Image): The photo.
        caption (str): Its class and cosine similarity.
    """

    picture: Image.Image
    caption: str


@dataclass(frozen=True)
class LoadedModel:
    """Model in use.

    Args:
        inferencer (TokenReductionInferencer): The model.
        name (str): Its name.
        record (FitRecord | None): Its record; None for a checkpoint.
        gallery (Gallery | None): Photos to search for similar ones.
        photo_files (PhotoFiles): Photos that may be shown.
        files (FitFolder | None): Model folder with its record; None for a
            checkpoint.
    """

    inferencer: TokenReductionInferencer
    name: str
    record: FitRecord | None
    gallery: Gallery | None
    photo_files: PhotoFiles
    files: FitFolder | None

    @property
    def about(self) -> str:
        """Name, classes and accuracy, in lines."""
        classes = self.inferencer.classes
        about = text(
            'page.about',
            name=self.name,
            classes=count_classes(len(classes)),
            names=join_first(classes, 6),
        )
        if self.record is None:
            return about
        result = describe_result(self.record).replace('**', '')
        return f'{about}\n{result}'

    def require_files(self) -> FitFolder:
        """Return the model folder; raise an ``Error`` for a checkpoint."""
        if self.files is None:
            raise Error(text('page.no_record'))
        return self.files

    @property
    def can_reduce(self) -> bool:
        """Whether token reduction and its pictures support the model."""
        try:
            backbone = as_reducible(self.inferencer.model.backbone)
        except Error:
            return False
        return backbone.has_cls and not backbone.why_not_reducible

    @cached_property
    def variants(self) -> Variants:
        """Token-reduction methods for the model."""
        return Variants(self.inferencer)

    @cached_property
    def dependence(self) -> float:
        """Dependence of the photos of a plant."""
        if self.files is None:
            return Dependence().value
        return read_dependence(self.files.path).value

    @cached_property
    def sets(self) -> CalibratedSets:
        """Calibrated prediction sets, read once for all photos."""
        path = self.require_files().path
        return CalibratedSets.read(path, self.inferencer.classes)

    def find_rule(self, labels: Sequence[int] | None) -> SetRule | None:
        """Return the rule for prediction sets; None without a guarantee.

        Args:
            labels (Sequence[int] | None): Labels of the classes that can
                occur; None for all.
        """
        try:
            return self.sets.find_rule(SURE, labels)
        except Error:  # too few photos, a checkpoint or an earlier version
            return None

    @torch.no_grad()
    def find_similar(self, inputs: torch.Tensor) -> list[SimilarPhoto]:
        """Return photos similar to an image, most similar first.

        Args:
            inputs (torch.Tensor): Prepared image (3, H, W).
        """
        if self.gallery is None:
            return []
        model = self.inferencer.model
        batch = model.data_preprocessor(dict(inputs=[inputs]))['inputs']
        feature = extract_feature(model, batch, self.gallery.feature)
        query = LabeledImages.from_names(['leaf'], [None], 'the page')
        (entry,), _ = look_up(
            self.gallery, query, feature.cpu(), Search(topk=NUM_SIMILAR)
        )
        return [*self._read_photos(entry['neighbors'])]

    def _read_photos(self, neighbors: list[dict]) -> Iterator[SimilarPhoto]:
        """Yield the existing, unchanged photos."""
        for neighbor in neighbors:
            path = neighbor['image']
            with suppress(OSError, UndecodedError):
                if self.photo_files.may_show(path):
                    similarity = f'{neighbor["similarity"]:.3f}'
                    yield SimilarPhoto(
                        make_preview(upright(path)),
                        f'{neighbor["name"] or ""} {similarity}',
                    )


def open_model(
    path: str | PathLike,
    inferencer: TokenReductionInferencer | None = None,
    gallery: Gallery | None = None,
    name: str | None = None,
) -> LoadedModel:
    """Open a model folder or checkpoint for the page.

    Args:
        path (str | Path): Model folder written by fit, or checkpoint.
        inferencer (TokenReductionInferencer, optional): The loaded model.
            Defaults to None: it is loaded.
        gallery (Gallery, optional): Photos to search for similar ones.
            Defaults to None: the training photos of a model folder.
        name (str, optional): Name of the model. Defaults to None: as in its
            report, or the name of the file.

    Raises:
        FileNotFoundError: If the model is missing.
        Error: If the model or its record is damaged.
    """
    inferencer = inferencer or TokenReductionInferencer(path)
    record = None
    photo_files = PhotoFiles()
    files = FitFolder.open(path) if is_fitted(path) else None
    if files is not None and not files.file.is_file():
        files = None
    if files is not None:
        record = files.read_complete()
        name = name or files.name_model(record)
        photos, head = files.read_used_photos(), inferencer.model.head
        if gallery is None and isinstance(head, NearestHead):
            with damaged_file_errors(files.table, ValueError):
                gallery = _list_training_photos(photos, head)
            photo_files = PhotoFiles.from_rows(photos)
    name = name or Path(path).resolve().name
    return LoadedModel(inferencer, name, record, gallery, photo_files, files)


@lru_cache(maxsize=4)
def load_version(version: ModelVersion) -> LoadedModel:
    """Open a model of the page; repeated calls return the same one."""
    return open_model(version.folder / 'model', name=version.name)


def _list_training_photos(
    photos: list[PhotoRow], head: NearestHead
) -> Gallery:
    """Return the training photos, whose features the head stores.

    Raise an ``Error`` if their numbers differ.
    """
    features = head.get_buffer('references').cpu()
    if len(photos) != len(features):
        raise Error(f'{len(photos)} photos, but {len(features)} features')
    images = LabeledImages.from_names(
        [photo.path for photo in photos],
        [photo.label for photo in photos],
        'the model folder',
    )
    return Gallery(images, features, '', 'pre_logits')
