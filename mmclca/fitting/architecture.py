# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Infer the backbone architecture from parameter names and shapes.

Settings that leave no trace in the shapes come from the stored config, or
else are those of the releases. The backbone is then built on the meta
device and compared with the file.
"""

from inspect import signature

from mmpretrain.models.backbones.base_backbone import BaseBackbone
from torch import Tensor

from mmclca.checkpoints.attention_heads import infer_num_heads
from mmclca.checkpoints.checkpoint import Checkpoint
from mmclca.checkpoints.error import CheckpointError
from mmclca.checkpoints.families import (
    NETWORKS,
    Network,
    deit_repository,
    recognize_network,
    vit,
)
from mmclca.checkpoints.gate.contents import building_within
from mmclca.checkpoints.gate.stored_config import read_stored_backbone
from mmclca.checkpoints.rename import keep_backbone, rename_to_classifier
from mmclca.errors import Error
from mmclca.registry import MODELS
from mmclca.utils.messages import join_first

VIT = vit.NETWORK.type
RESMLP = deit_repository.RESMLP_NETWORK.type
# pre-training encoders, and their settings for a classifier
PRETRAINED = ('MoCoV3ViT', 'mmclca.SegmentedMAEViT')
SHARED = ('arch', 'img_size', 'patch_size', 'norm_cfg', 'stem')
# settings determined by the images and the head of fit
FIXED = ('in_channels', 'multiclass')
TAKEN = (
    'fit supports ViT, DeiT and DINOv2 with a CLS token, and CaiT, ResMLP and '
    'PatchConvNet in the format of their releases, or with the config in the '
    'checkpoint, as tools/train.py writes it'
)


def infer_backbone(checkpoint: Checkpoint) -> dict:
    """Infer the backbone settings from an opened checkpoint.

    The result has ``type``, ``arch`` in numbers and other required settings,
    and ``img_size`` only if the backbone accepts a single image size.

    Raises:
        CheckpointError: If the architecture is not supported.
        Error: If the stored config contains more than plain settings.
    """
    weights = dict(checkpoint.weights)
    rename_to_classifier(weights)
    keep_backbone(weights)
    tensors = {
        key.removeprefix('foreign_'): value for key, value in weights.items()
    }
    network = recognize_network(tensors)
    settings = _read_settings(checkpoint, network.type)
    if settings is None:
        settings = _infer_settings(checkpoint, network, tensors)
    settings = {k: v for k, v in settings.items() if k not in FIXED}
    with building_within(tensors, checkpoint.name):
        backbone = MODELS.build(settings)
    _compare(backbone, settings['type'], tensors, checkpoint.name)
    return _expand_arch(settings, backbone)


def _infer_settings(
    checkpoint: Checkpoint, network: Network, weights: dict[str, Tensor]
) -> dict:
    """Infer the settings of a released network from its shapes."""
    try:
        settings = network.settings(weights)
    except KeyError as error:
        missing = [f'{error.args[0]} is missing']
        raise _refusal(network.type, missing, checkpoint.name) from error
    except IndexError as error:
        shapes = ['a tensor has too few dimensions']
        raise _refusal(network.type, shapes, checkpoint.name) from error
    arch = settings['arch']
    if network is vit.NETWORK:
        width = arch['embed_dims']
        arch['num_heads'] = infer_num_heads(checkpoint, width).number
    return dict(settings, type=network.type)


def _read_settings(checkpoint: Checkpoint, network_type: str) -> dict | None:
    """Return the stored settings of a supported backbone, if any."""
    try:
        stored = read_stored_backbone(checkpoint) or {}
    except Error:
        if network_type != VIT:
            raise
        return None  # a ViT inside another network needs no config
    if stored.get('type') in PRETRAINED:
        return {k: stored[k] for k in SHARED if k in stored} | dict(type=VIT)
    types = [network.type for network in NETWORKS]
    return stored if stored.get('type') in types else None


def _compare(
    backbone: BaseBackbone, network_type: str, weights: dict, name: str
) -> None:
    """Raise if the weights do not match, or images are not square."""
    mismatches = backbone.list_mismatches(weights, '')
    if mismatches:
        raise _refusal(network_type, mismatches, name)
    sides = backbone.img_size, backbone.patch_resolution
    has_size = network_type == RESMLP or 'pos_embed' in weights
    if has_size and any(height != width for height, width in sides):
        raise CheckpointError(
            f'{name} needs images of {backbone.img_size} px in '
            f'{backbone.patch_resolution} patches; fit takes square ones'
        )


def _refusal(
    network_type: str, mismatches: list[str], name: str
) -> CheckpointError:
    return CheckpointError(
        f'{name} does not match the {network_type} built by fit: '
        f'{len(mismatches)} parameters differ '
        f'({join_first(mismatches, 6)}); {TAKEN}'
    )


def _expand_arch(settings: dict, backbone: BaseBackbone) -> dict:
    """Drop the settings chosen by fit, and expand the arch."""
    backbone_class, kept = type(backbone), dict(settings)
    kept.pop('img_size', None)
    default = signature(backbone_class).parameters['arch'].default
    arch = kept.setdefault('arch', default)
    if not isinstance(arch, dict):
        kept['arch'] = backbone_class.arch_zoo[arch.lower()]
    if settings['type'] == RESMLP:  # needs a fixed size
        kept['img_size'] = backbone.img_size[0]
    return kept


def describe_assumed_heads(checkpoint: Checkpoint, backbone: dict) -> str:
    """Describe the head count assumed by :func:`infer_backbone`.

    ViT shapes do not determine it. Empty if it is known.
    """
    arch = backbone['arch']
    width = arch['embed_dims']
    if backbone['type'] != VIT:
        return ''
    if not infer_num_heads(checkpoint, width).is_assumed:
        return ''
    return (
        f'{checkpoint.name} does not store its number of attention heads; '
        f'assuming {arch["num_heads"]} for embed_dims={width}; for another '
        'number, add the config (publish_model.py --config CONFIG)'
    )
