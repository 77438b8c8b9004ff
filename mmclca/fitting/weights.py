# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""The weights that a model starts from, and what they are of."""

import re
from dataclasses import dataclass
from pathlib import Path

import timm

from mmclca.checkpoints.error import CheckpointError
from mmclca.checkpoints.opening import open_checkpoint

from .architecture import VIT, backbone_of

TIMM = 'timm://'
STEM = 16  # pixels that a stem of convolutions makes a patch of
# what is taken where none are named, by which candidates were measured
DEFAULT = 'deit_tiny_patch16_224.fb_in1k'
FILE = f'{DEFAULT}.safetensors'
NO_WEIGHTS = (
    f'no weights: none are given, and {TIMM}{DEFAULT} cannot be found in the '
    'cache or fetched. With a network elsewhere: python -c "import timm, '
    f"safetensors.torch as st; st.save_file(timm.create_model('{DEFAULT}', "
    f"pretrained=True).state_dict(), '{FILE}')\", copy {FILE} here and "
    f'give --weights {FILE}'
)


@dataclass(frozen=True)
class Pretrained:
    """Weights, and the settings of a model that takes them.

    Args:
        source (str): Path or ``timm://NAME``.
        backbone (dict): Of :func:`backbone_of`.
        mean (tuple[float]): Of each channel of the pixels, 0 to 255.
        std (tuple[float]): Standard deviation, likewise.
        note (str): What is uncertain, in a line; empty if nothing is.
    """

    source: str
    backbone: dict
    mean: tuple
    std: tuple
    note: str

    @property
    def name(self) -> str:
        """timm's name, or that of the file without its ending."""
        return _name_of(self.source)

    @property
    def kind(self) -> str:
        """The class of the backbone."""
        return self.backbone['type'].removeprefix('mmclca.')

    def words(self) -> str:
        """Return the weights in words."""
        arch = self.backbone['arch']
        patch = self.backbone.get('patch_size', STEM)
        kind = '' if self.backbone['type'] == VIT else f'{self.kind}, '
        return (
            f'{self.name} ({kind}{arch["num_layers"]} layers, '
            f'{arch["embed_dims"]} channels, patches of {patch} px)'
        )


def find_weights(
    weights: str | None = None, pixels: str | None = None
) -> Pretrained:
    """Find weights and read what they are of.

    Args:
        weights (str, optional): A file or ``timm://NAME``. Defaults to None:
            ``DEFAULT``, from timm's cache or the network.
        pixels (str, optional): See :func:`pixels_of`. Defaults to None.

    Raises:
        FileNotFoundError: If there is no such file.
        CheckpointError: If they cannot be had, or are of another model.
        ValueError: If there is no such ``pixels``.
    """
    source = weights or f'{TIMM}{DEFAULT}'
    try:
        checkpoint = open_checkpoint(source)
    except CheckpointError as error:
        if weights is None:
            raise CheckpointError(NO_WEIGHTS) from error
        raise
    (mean, std), note = pixels_of(_name_of(source), pixels)
    return Pretrained(source, backbone_of(checkpoint), mean, std, note)


def _name_of(source: str) -> str:
    """Return the name of weights: timm's, or a file's without its ending."""
    if source.startswith(TIMM):
        return source.removeprefix(TIMM)
    return Path(source).stem


# mean and standard deviation of each channel, 0 to 255
PIXELS = dict(
    imagenet=((123.675, 116.28, 103.53), (58.395, 57.12, 57.375)),
    half=((127.5,) * 3, (127.5,) * 3),
)
HASH = re.compile(r'-[0-9a-f]{8,}$')


def pixels_of(name: str, pixels: str | None = None) -> tuple[tuple, str]:
    """Mean and standard deviation by timm's name of the weights.

    Args:
        name (str): Of the model, or a file's without its ending, such as
            ``deit_tiny_patch16_224-a1311bcf``.
        pixels (str, optional): A name in ``PIXELS`` in place of what timm
            says. Defaults to None.

    Returns:
        tuple[tuple, str]: Mean and standard deviation, three numbers each in
        0 to 255; a line where they are a guess, else empty.

    Raises:
        ValueError: If ``pixels`` is no such name.
    """
    if pixels is not None:
        if pixels not in PIXELS:
            raise ValueError(
                f'pixels {pixels!r} is not one of {", ".join(PIXELS)}'
            )
        return PIXELS[pixels], ''
    known = HASH.sub('', name)
    if not timm.is_model_pretrained(known):
        return PIXELS['imagenet'], (
            f'timm knows no model {name}: its pixels are taken to be '
            "normalized as ImageNet's (--pixels half for 0.5)"
        )
    cfg = timm.get_pretrained_cfg(known)
    mean, std = (
        [round(255 * x, 3) for x in values] for values in (cfg.mean, cfg.std)
    )
    return (tuple(mean), tuple(std)), ''
