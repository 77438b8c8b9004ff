# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Load models and images named on the command line."""

import shlex
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from mmclca.errors import Error
from mmclca.utils.image_suffixes import PHOTO_SUFFIXES
from mmclca.utils.messages import spinner


def load_inferencer(args, config, checkpoint, threshold=None):
    """Load a model with the device and config options in ``args``."""
    from mmclca.apis import TokenReductionInferencer

    return TokenReductionInferencer(
        config,
        checkpoint,
        args.device,
        threshold=threshold,
        options=args.cfg_options,
    )


def loading():
    """Show a spinner on a terminal while libraries are imported."""
    return spinner('Loading libraries', sys.stderr)


@contextmanager
def quiet() -> Iterator[None]:
    """Hide log messages below warnings, such as loaded checkpoints."""
    from mmengine.logging import MMLogger

    with loading():
        logger = MMLogger.get_current_instance()
    level = logger.level
    logger.setLevel('WARNING')
    try:
        yield
    finally:
        logger.setLevel(level)


def check_order(first: str, arguments: Sequence[str]) -> None:
    """Refuse a model after the first argument; show the right command."""
    from mmclca.checkpoints.model_folder import is_checkpoint

    models = [*filter(is_checkpoint, arguments)]
    if models and not is_checkpoint(first):
        images = [file for file in arguments if file != models[0]]
        config = first.endswith('.py')
        swapped = [*images, '--config', first] if config else [first, *images]
        raise Error(
            f'the model must be the first argument: {Path(sys.argv[0]).name} '
            f'{shlex.join([models[0], *swapped])}'
        )


def sort_files(
    files: Sequence[str], random: bool = False
) -> tuple[str | None, str | None, list[str]]:
    """Sort file names into config, checkpoint and images.

    ``random`` allows a config without a checkpoint: random weights.
    """
    from mmclca.checkpoints.model_folder import is_checkpoint

    checkpoints = [file for file in files if is_checkpoint(file)]
    others_than_models = [file for file in files if file not in checkpoints]
    images = [file for file in others_than_models if _is_image(file)]
    configs = [file for file in others_than_models if file not in images]
    few = random and configs and not checkpoints
    if not few and len(checkpoints) != 1 or len(configs) > 1:
        raise Error(
            f'found {len(checkpoints)} checkpoints ({" ".join(checkpoints)}) '
            f'and {len(configs)} configs ({" ".join(configs)}); give one '
            'checkpoint (.pth, .safetensors or model folder) and, if it '
            'stores no config, one config; accepted image types: '
            f'{" ".join(PHOTO_SUFFIXES)}'
        )
    return (configs or [None])[0], (checkpoints or [None])[0], images


def _is_image(file: str) -> bool:
    return file.lower().endswith(PHOTO_SUFFIXES) or Path(file).is_dir()


def read_images(places: Sequence[str]):
    """Read names and BGR images; the error lists all unreadable files."""
    from mmclca.apis import find_images
    from mmclca.datasets.batches import read_image

    images, bad = [], []
    for path in find_images(places):
        try:
            images.append((Path(path).stem, read_image(path)))
        except ValueError as error:
            bad.append(f'\n  {path}: {error}')
    if bad:
        raise Error(f'unreadable images:{"".join(bad)}')
    return images


def read_labeled_images(cfg, path: str | None, split: str):
    """Return the labeled images in a folder or list, or in a config split."""
    from mmclca.datasets.photos import list_images
    from mmclca.datasets.split_images import list_split_images

    return list_images(path) if path else list_split_images(cfg, split)
