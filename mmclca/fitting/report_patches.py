# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Kept and merged patches of some photos in the report."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from PIL import Image

from mmclca.apis import TokenReductionInferencer
from mmclca.datasets.batches import make_view
from mmclca.languages import text
from mmclca.models import reduces
from mmclca.visualization import find_kept_patches, legend
from mmclca.visualization.kept_patches import MIXED, SWATCHES, KeptPatches
from mmclca.visualization.painting import DROPPED, FUSED, KEPT, MERGED

from .pictures import Pictures, embedded
from .report_photos import TestedPhoto
from .wording import about

PATCH_PHOTOS = 3
PATCH_SIDE = 224
LABELS = {
    SWATCHES[KEPT]: 'patches.label_kept',
    SWATCHES[MERGED]: 'patches.label_merged',
    SWATCHES[FUSED]: 'patches.label_fused',
    SWATCHES[DROPPED]: 'patches.label_dropped',
    MIXED: 'patches.label_mixed',
}


@dataclass(frozen=True)
class PatchSection:
    """Pictures of patches for the template.

    Args:
        rows (list[list[tuple[str, dict]]]): Captions and pictures per photo,
            after each stage.
        legend (list): Swatches in use.
        merges (bool): Whether patches are merged.
        drops (bool): Whether patches are dropped.
    """

    rows: list[list[tuple[str, dict[str, Any]]]]
    legend: list
    merges: bool
    drops: bool


def draw_patch_section(
    model: Path, tested: Sequence[TestedPhoto], pictures: Pictures
) -> PatchSection | None:
    """Draw the remaining patches of correctly classified photos.

    Return None without a checkpoint, token reduction or photo.
    """
    if not model.is_file():
        return None
    inferencer = TokenReductionInferencer(model, device='cpu')
    if not reduces(inferencer.model.backbone):
        return None
    views = [
        make_view(inferencer.model, photo.label, inputs)
        for photo in select_examples(tested)
        if (inputs := pictures.view(inferencer, photo.path)) is not None
    ]
    patches = find_kept_patches(inferencer.model, views)
    if not patches:
        return None
    swatches = legend(patches)
    return PatchSection(
        rows=[_draw_stages(photo) for photo in patches],
        legend=[replace(x, label=text(LABELS[x])) for x in swatches],
        merges=SWATCHES[MERGED] in swatches or MIXED in swatches,
        drops=SWATCHES[DROPPED] in swatches,
    )


def select_examples(tested: Sequence[TestedPhoto]) -> list[TestedPhoto]:
    """Select one correct photo per class, from ``PATCH_PHOTOS`` classes."""
    correct = [photo for photo in tested if photo.is_correct]
    first = {photo.label: photo for photo in reversed(correct)}
    return [first[name] for name in sorted(first)[:PATCH_PHOTOS]]


def _draw_stages(photo: KeptPatches) -> list[tuple[str, dict[str, Any]]]:
    """Return captions and pictures: the photo, then each stage."""
    pictures = {photo.title: photo.image}
    for stage in photo.stages:
        caption = stage.title
        if stage.kept is not None:  # not mixed
            caption = text(
                'patches.share',
                stage=stage.title,
                share=about(stage.kept),
                kept_as=stage.kept_as,
            )
        pictures[caption] = stage.picture
    return [
        (caption, embedded(Image.fromarray(array), caption, PATCH_SIDE))
        for caption, array in pictures.items()
    ]
