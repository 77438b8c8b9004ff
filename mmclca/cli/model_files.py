# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""The model that a tool is to look at, and on what images."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from mmclca.apis import TokenReductionInferencer, find_images
from mmclca.apis.labelled_images import (
    LabelledImages,
    images_at,
    images_of_split,
)
from mmclca.apis.sources import read_image
from mmclca.checkpoints.downloading import open_checkpoint
from mmclca.checkpoints.fitted import is_checkpoint, model_file
from mmclca.checkpoints.stored import stored_config
from mmclca.configs import (
    check_patches,
    merge_options,
    read_config,
    require_settings,
)
from mmclca.utils.image_suffixes import PHOTOGRAPH_SUFFIXES


def sort_files(
    files: Sequence[str],
) -> tuple[str | None, str | None, list[str]]:
    """Tell files apart by their names, in whatever order they come.

    Args:
        files (Sequence[str]): A config (path or name), a checkpoint, and
            images or folders of them; without a config, the one in the
            checkpoint is meant.

    Returns:
        tuple: Config, checkpoint and images.

    Raises:
        ValueError: If there are several configs or checkpoints, or no
            checkpoint.
    """
    checkpoints = [file for file in files if is_checkpoint(file)]
    rest = [file for file in files if file not in checkpoints]
    images = [file for file in rest if _is_image(file)]
    configs = [file for file in rest if file not in images]
    if len(checkpoints) != 1 or len(configs) > 1:
        raise ValueError(
            f'{len(checkpoints)} checkpoints ({" ".join(checkpoints)}) and '
            f'{len(configs)} configs ({" ".join(configs)}): give one '
            'checkpoint (.pth, .safetensors, a folder of fit) and, where it '
            'does not hold its config, one config. Images end in '
            f'{" ".join(PHOTOGRAPH_SUFFIXES)}'
        )
    return (configs or [None])[0], checkpoints[0], images


def _is_image(file: str) -> bool:
    return file.lower().endswith(PHOTOGRAPH_SUFFIXES) or Path(file).is_dir()


def read_images(places: Sequence[str]) -> list[tuple[str, np.ndarray]]:
    """Names and BGR images.

    Args:
        places (Sequence[str]): Files, folders and patterns.

    Raises:
        ValueError: If some cannot be read; names all of them.
    """
    images, bad = [], []
    for path in find_images(places):
        try:
            images.append((Path(path).stem, read_image(path)))
        except ValueError as error:
            bad.append(f'\n  {path}: {error}')
    if bad:
        raise ValueError(f'not read, no images:{"".join(bad)}')
    return images


def images_of(
    inferencer: TokenReductionInferencer, place: str | None, split: str
) -> LabelledImages:
    """Images with their classes.

    Args:
        inferencer (TokenReductionInferencer): A model with its config.
        place (str, optional): A folder or a list; None: a split of the
            config.
        split (str): 'train', 'val' or 'test'.
    """
    if place:
        return images_at(place)
    return images_of_split(inferencer.model._config, split)


def load(
    config: str | None,
    checkpoint: str,
    options: dict,
    device: str | None,
    reject: str | Path | None = None,
) -> TokenReductionInferencer:
    """A trained model, with its config and the names of its classes.

    Args:
        config (str, optional): Path or name of a config; None: the one that
            the checkpoint holds.
        checkpoint (str): Path or URL of the weights.
        options (dict): Of ``--cfg-options``.
        device (str, optional): Where to run it; None: on a GPU where there
            is one.
        reject (str | Path, optional): Threshold below which an image is of
            no known class, see :class:`TokenReductionInferencer`. Defaults
            to None.
    """
    checkpoint = model_file(checkpoint)
    if config is None:
        checkpoint = open_checkpoint(checkpoint)
        cfg = stored_config(checkpoint)
        merge_options(cfg, options)
    else:
        cfg = read_config(config, options)
    require_settings(cfg, 'model')
    check_patches(cfg)
    return TokenReductionInferencer(cfg, checkpoint, device, reject=reject)
