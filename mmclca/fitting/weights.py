# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""The weights that a model starts from, and what they are of."""

from dataclasses import dataclass
from pathlib import Path

from mmclca.checkpoints.downloading import is_in_cache, open_checkpoint
from mmclca.checkpoints.error import CheckpointError

from .architecture import VIT, backbone_of
from .pixels import pixels_of

TIMM = 'timm://'
STEM = 16  # pixels that a stem of convolutions makes a patch of
# what is taken where none are named: the first that is in the cache, else
# the first; those that the table of candidates was measured with
DEFAULTS = (
    'deit_tiny_patch16_224.fb_in1k',
    'vit_tiny_patch16_224.augreg_in21k_ft_in1k',
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
        return name_of(self.source)

    @property
    def kind(self) -> str:
        """The class of the backbone."""
        return self.backbone['type'].removeprefix('mmclca.')

    def words(self) -> str:
        """The weights in words."""
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
            of ``DEFAULTS`` the first in timm's cache, else the first from
            the network.
        pixels (str, optional): See :func:`pixels_of`. Defaults to None.

    Raises:
        FileNotFoundError: If there is no such file.
        CheckpointError: If they cannot be had, or are of another model.
        ValueError: If there is no such ``pixels``.
    """
    source = weights or _default()
    try:
        checkpoint = open_checkpoint(source)
    except CheckpointError as error:
        if weights is None:
            raise CheckpointError(_how_to_get(source)) from error
        raise
    (mean, std), note = pixels_of(name_of(source), pixels)
    return Pretrained(source, backbone_of(checkpoint), mean, std, note)


def _default() -> str:
    cached = (name for name in DEFAULTS if is_in_cache(name))
    return TIMM + next(cached, DEFAULTS[0])


def name_of(source: str) -> str:
    """The name of weights: timm's, or a file's without its ending."""
    if source.startswith(TIMM):
        return source.removeprefix(TIMM)
    return Path(source).stem


def _how_to_get(source: str) -> str:
    name = name_of(source)
    file = f'{name}.safetensors'
    return (
        f'no weights: none are given, none in the cache, and {source} cannot '
        f'be fetched. With a network elsewhere: python -c "import timm, '
        f"safetensors.torch as st; st.save_file(timm.create_model('{name}', "
        f"pretrained=True).state_dict(), '{file}')\", copy {file} here and "
        f'give --weights {file}'
    )
