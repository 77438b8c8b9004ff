# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Find pretrained weights and describe their backbone."""

import re
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property
from pathlib import Path
from typing import Any

import timm

from mmclca.checkpoints.error import CheckpointError, DownloadError
from mmclca.checkpoints.opening import open_checkpoint
from mmclca.utils.messages import check_choice, did_you_mean

from .architecture import VIT, describe_assumed_heads, infer_backbone
from .timm_networks import (
    TIMM_STAGES,
    TIMM_VIT,
    find_timm_vit,
    recognize_timm_backbone,
)

Normalization = tuple[tuple[float, ...], tuple[float, ...]]
TIMM = 'timm://'
STEM = 16  # patch size of convolutional stems, in pixels
# more accurate than DeiT-Tiny at equal cost, see docs/results/few_photos.md
DEFAULT = 'vit_tiny_patch16_224.augreg_in21k_ft_in1k'
# mean and standard deviation of each channel, 0 to 255
PIXELS: dict[str, Normalization] = dict(
    imagenet=((123.675, 116.28, 103.53), (58.395, 57.12, 57.375)),
    half=((127.5,) * 3, (127.5,) * 3),
)
# addresses of timm's weights in other programs
_HUB = re.compile(
    r'((hf([-_]hub)?:|huggingface:|https://huggingface\.co)/*)?(timm[:/])?',
    re.I,
)
HASH = re.compile(r'-[0-9a-f]{8,}$')  # suffix of released files


@dataclass(frozen=True)
class NetworkSizes:
    """Sizes of a network of layers.

    Args:
        num_layers (int): Number of layers.
        embed_dims (int): Channels.
        patch_size (int): Patch side in pixels.
    """

    num_layers: int
    embed_dims: int
    patch_size: int


@dataclass(frozen=True)
class PretrainedWeights:
    """Pretrained weights: their source, and settings for a matching model.

    Args:
        name (str): Name in timm, or file name without its ending.
        source (str): Path or ``timm://NAME``.
        backbone (dict): Backbone config, see :func:`.infer_backbone`.
        pixels (Normalization): Mean and standard deviation per channel, 0 to
            255.
        notes (tuple[str, ...]): Assumptions and choices, one line each.
    """

    name: str
    source: str
    backbone: dict
    pixels: Normalization
    notes: tuple[str, ...]

    @property
    def backbone_name(self) -> str:
        """Class name of the backbone."""
        return self.backbone['type'].removeprefix('mmclca.')

    @property
    def is_vit(self) -> bool:
        """Whether the candidates with token reduction are for this network."""
        return self.backbone['type'] in (VIT, TIMM_VIT)

    @property
    def has_stages(self) -> bool:
        """Whether the network is one of timm with a map per stage."""
        return self.backbone['type'] == TIMM_STAGES

    @cached_property
    def sizes(self) -> NetworkSizes | None:
        """Sizes of the full network; None for one with stages."""
        arch = self.backbone['arch']
        if self.has_stages:
            return None
        if isinstance(arch, str):  # a ViT of timm
            vit: Any = find_timm_vit(arch)
            return NetworkSizes(len(vit.layers), vit.embed_dims, vit.stride[0])
        patch = self.backbone.get('patch_size', STEM)
        return NetworkSizes(arch['num_layers'], arch['embed_dims'], patch)

    @property
    def depth(self) -> int | None:
        """Number of layers; None for a network with stages."""
        return self.sizes.num_layers if self.sizes else None

    @property
    def network(self) -> str:
        """Type and sizes of the network, in one line."""
        arch, parts = self.backbone['arch'], []
        if isinstance(arch, str):
            parts.append(f'{arch} in timm')
        elif self.backbone['type'] != VIT:
            parts.append(self.backbone_name)
        if self.sizes:
            parts += [
                f'{self.sizes.num_layers} layers',
                f'{self.sizes.embed_dims} channels',
                f'patches of {self.sizes.patch_size} px',
            ]
        return ', '.join(parts)


def find_weights(
    weights: str | None = None,
    pixels: str | None = None,
    arch: str | None = None,
) -> PretrainedWeights:
    """Find weights and infer their backbone.

    ``weights`` is a file or ``timm://NAME``; None for ``DEFAULT``, from
    timm's cache or the network. ``pixels`` selects the normalization, see
    :func:`find_normalization`; ``arch`` is the name in timm of a network that
    only timm has. Raise a ``CheckpointError`` if the weights cannot be loaded
    or have an unknown architecture.
    """
    source = weights or f'{TIMM}{DEFAULT}'
    name = source.removeprefix(TIMM)
    _check_source(source)
    try:
        checkpoint = open_checkpoint(source)
    except DownloadError as error:
        file = f'{name}.safetensors'
        raise CheckpointError(f'{error}: `weights={file}`') from error
    name = Path(source).stem if name == source else name
    try:
        backbone = infer_backbone(checkpoint)
    except CheckpointError as error:
        arch = arch or _find_arch(name)
        if arch is None:
            hint = did_you_mean(name, timm.list_models(), limit=3)
            raise CheckpointError(
                f'{error}; for another network of timm add `arch`{hint}'
            ) from error
        backbone, heads = recognize_timm_backbone(checkpoint, arch), ''
    else:
        is_known = find_timm_name(name) is not None
        heads = ''
        if not is_known:
            heads = describe_assumed_heads(checkpoint, backbone)
        if arch:  # must match, too
            recognize_timm_backbone(checkpoint, arch)
    if arch is None or find_timm_name(name):
        arch = name
    normalization, note = find_normalization(arch, pixels)
    notes = tuple(filter(None, (note, heads, checkpoint.choice)))
    return PretrainedWeights(name, source, backbone, normalization, notes)


def _check_source(source: str) -> None:
    """Raise ``FileNotFoundError`` for a missing file; name similar weights.

    Other programs write names in timm without ``timm://``, or with the
    address of timm at a hub.
    """
    address = _HUB.match(source)
    prefix, host = (address[0], address[1]) if address else ('', None)
    name = source.removeprefix(prefix)
    if Path(source).expanduser().exists() or source.startswith(TIMM):
        return
    if timm.is_model_pretrained(name):
        raise FileNotFoundError(
            f'{source} is not a file; for these weights of timm, write '
            f'{TIMM}{name}'
        )
    if '://' in source and not source.lower().startswith('hf'):
        return
    if host:
        raise FileNotFoundError(
            f'{source}: weights are not read from a hub; download '
            'model.safetensors there, and give the path of the file'
        )
    tagged = timm.list_pretrained()
    names = [*{x.partition('.')[0]: None for x in tagged}, *tagged]
    close = get_close_matches(name, names, 1, cutoff=0.8)
    hint = ''.join(f'; do you mean {TIMM}{x}?' for x in close)
    raise FileNotFoundError(
        f'{source} does not exist; give a file of weights or {TIMM}NAME{hint}'
    )


def _find_arch(name: str) -> str | None:
    """Find the name of a timm network at the start of a file name."""
    parts, networks = re.split(r'([._-])', name), {*timm.list_models()}
    starts = (''.join(parts[:n]) for n in range(len(parts), 0, -2))
    return next((start for start in starts if start in networks), None)


def find_timm_name(name: str) -> str | None:
    """Return the name without its hash, or None if timm does not know it."""
    name = HASH.sub('', name)
    return name if timm.is_model_pretrained(name) else None


def find_normalization(
    name: str, pixels: str | None = None
) -> tuple[Normalization, str]:
    """Look up mean and standard deviation for pixel normalization.

    They come from timm, by the name of the weights, or from ``PIXELS``, if
    ``pixels`` names an entry. Return both, three numbers each in 0 to 255,
    and a note if they are assumed.
    """
    if pixels is not None:
        check_choice(PIXELS, pixels=pixels)
        return PIXELS[pixels], ''
    timm_name = find_timm_name(name)
    cfg = timm_name and timm.get_pretrained_cfg(timm_name)
    if not cfg:
        return PIXELS['imagenet'], (
            f'{name} is not in timm, assuming ImageNet normalization '
            '(pixels half for 0.5)'
        )
    mean, std = (
        tuple(round(255 * value, 3) for value in values)
        for values in (cfg.mean, cfg.std)
    )
    return (mean, std), ''
