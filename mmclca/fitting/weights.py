# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Find pretrained weights and describe their backbone."""

import re
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import timm

from mmclca.checkpoints.checkpoint import Checkpoint
from mmclca.checkpoints.error import CheckpointError, DownloadError
from mmclca.checkpoints.opening import open_checkpoint
from mmclca.models.backbones import TimmStages
from mmclca.models.backbones.timm_stages import has_size
from mmclca.utils.messages import check_choice, did_you_mean
from mmclca.utils.meta_device import on_meta_device

from .architecture import VIT, describe_assumed_heads, infer_backbone

Normalization = tuple[tuple[float, ...], tuple[float, ...]]
TIMM = 'timm://'
STEM = 16  # patch size of convolutional stems, in pixels
# more accurate than DeiT-Tiny at equal cost, see docs/results/frontier.md
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
    def is_of_timm(self) -> bool:
        """Whether timm builds the backbone."""
        return self.backbone_name == 'TimmStages'

    @property
    def depth(self) -> int | None:
        """Number of layers; None for a timm network."""
        return None if self.is_of_timm else self.backbone['arch']['num_layers']

    @property
    def network(self) -> str:
        """Type and sizes of the network, in one line."""
        arch = self.backbone['arch']
        if self.is_of_timm:
            return f'{arch} in timm'
        patch = self.backbone.get('patch_size', STEM)
        sizes = f'{arch["num_layers"]} layers, {arch["embed_dims"]} channels'
        if self.backbone['type'] != VIT:
            sizes = f'{self.backbone_name}, {sizes}'
        return f'{sizes}, patches of {patch} px'


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


def recognize_timm_backbone(
    checkpoint: Checkpoint, arch: str
) -> dict[str, Any]:
    """Return settings of the network in timm that matches weights exactly.

    Networks with merged branches are recognized. Raise a ``CheckpointError``
    if weights differ.
    """
    mismatches = []
    for fused in (False, True):
        with on_meta_device():
            network = TimmStages(arch, fused=fused)
        weights = network.rename(checkpoint.weights)
        mismatches.append(network.list_mismatches(weights, ''))
        if not mismatches[-1]:
            backbone = dict(type='mmclca.TimmStages', arch=arch, fused=fused)
            if has_size(arch):
                backbone['img_size'] = network.img_size[0]
            return backbone
    raise network.refuse_weights(
        checkpoint.name, checkpoint.file_names, min(mismatches, key=len)
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
