# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from mmclca.visualization import check_reduces, draw_survivors, survivors
from mmclca.visualization.inputs import view_of_input

from .inferencer import TokenReductionInferencer


def draw_prediction(
    inferencer: TokenReductionInferencer,
    source: str | np.ndarray,
    result: dict,
    out: str | Path,
) -> None:
    """Draw what is left of an image stage by stage, beside its class.

    Args:
        inferencer (TokenReductionInferencer): The model.
        source (str | np.ndarray): The image, as it was given to it.
        result (dict): What it answered; an image that was not read has no
            picture.
        out (str | Path): Picture to write; its folder is made.

    Raises:
        ValueError: If the model reduces nothing.
    """
    model = inferencer.model
    check_reduces(model.backbone)
    title = f'{result["pred_class"]}, {result["pred_score"]:.3f}'
    if result['known'] is False:
        title += f'; not known, {result["known_score"]:.3f}'
    seen = inferencer.prepare(source)['inputs']
    view = view_of_input(model, title, seen)
    Path(out).parent.mkdir(parents=True, exist_ok=True)
    draw_survivors(survivors(model, [view]), out)


def picture_paths(images: Sequence[str], folder: str | Path) -> list[Path]:
    """Where to draw images: folders as theirs, names that end in .png.

    Args:
        images (Sequence[str]): Their paths.
        folder (str | Path): Folder of all pictures.

    Returns:
        list[Path]: One an image. Where two would be the same, as for a.jpg
        and a.tif, the names keep their endings.

    Raises:
        ValueError: If pictures would lie in a folder of images.
    """
    absolute = [Path(os.path.abspath(image)) for image in images]
    top = os.path.commonpath([path.parent for path in absolute])
    inside = [path.relative_to(top) for path in absolute]
    count = Counter(path.with_suffix('') for path in inside)
    pictures = [
        Path(folder, path).with_suffix('.png')
        if count[path.with_suffix('')] == 1
        else Path(folder, f'{path}.png')
        for path in inside
    ]
    folders = {path.parent for path in absolute}
    shared = {Path(os.path.abspath(path)).parent for path in pictures}
    if folders & shared:
        raise ValueError(
            f'pictures in {folder} would lie among images, in '
            f'{min(folders & shared)}, and might replace one: give another '
            'folder'
        )
    return pictures
