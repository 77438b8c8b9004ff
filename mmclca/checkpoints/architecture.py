# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Infer the backbone architecture from parameter names and shapes.

Settings that leave no trace in the shapes come from the stored config, or
else are those of the releases. The backbone is then built on the meta
device and compared with the file.
"""

from inspect import signature

from mmpretrain.models.backbones.base_backbone import BaseBackbone
from torch import Tensor

from mmclca.registry import MODELS
from mmclca.utils.messages import join_first

from .attention_heads import known_heads
from .error import CheckpointError
from .families import NETWORKS, deit, network_of, vit
from .gate.contents import building_within
from .gate.stored_config import read_stored_backbone
from .load import compare_weights, wrong_parameters
from .releases import WeightSource, rename_to_backbone, source_of, weights_of

VIT = vit.NETWORK.type
RESMLP = deit.RESMLP.backbone.type
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


def backbone_of(checkpoint: dict) -> dict:
    """Infer the backbone settings from an opened checkpoint.

    The result has ``type``, ``arch`` in numbers and other required settings,
    and ``img_size`` only if the backbone accepts a single image size.

    Raises:
        CheckpointError: If the architecture is not supported.
        Error: If the stored config contains more than plain settings.
    """
    named = weights_of(checkpoint)
    source = source_of(named)
    name = source.name
    weights = dict(named)
    rename_to_backbone(weights, '')
    own = {
        key.removeprefix('foreign_'): value
        for key, value in weights.items()
        if isinstance(value, Tensor)
    }
    network = network_of(own)
    try:
        settings = _stored(checkpoint, network.type) or dict(
            _with_heads(network.settings(own), source), type=network.type
        )
    except KeyError as error:
        missing = [f'{error.args[0]} is missing']
        raise _refusal(network.type, missing, name) from error
    except IndexError as error:
        shapes = ['a tensor has too few dimensions']
        raise _refusal(network.type, shapes, name) from error
    settings = {k: v for k, v in settings.items() if k not in FIXED}
    with building_within(own, name):
        backbone = MODELS.build(settings)
    _compare(backbone, settings['type'], own, name)
    return _of_fit(settings, backbone)


def _stored(checkpoint: dict, kind: str) -> dict | None:
    """Return the stored settings of a supported backbone, if any."""
    try:
        stored = read_stored_backbone(checkpoint) or {}
    except ValueError:
        if kind != VIT:
            raise
        return None  # a ViT inside another network needs no config
    if stored.get('type') in PRETRAINED:
        return {k: stored[k] for k in SHARED if k in stored} | dict(type=VIT)
    known = [network.type for network in NETWORKS]
    return stored if stored.get('type') in known else None


def _compare(network: BaseBackbone, kind: str, own: dict, name: str) -> None:
    """Raise if the weights do not match, or images are not square."""
    compared = compare_weights(network.state_dict(), own)
    wrong = wrong_parameters(network, *compared)
    if wrong:
        raise _refusal(kind, wrong, name)
    sides = network.img_size, network.patch_resolution
    has_size = kind == RESMLP or 'pos_embed' in own
    if has_size and any(height != width for height, width in sides):
        raise CheckpointError(
            f'{name} needs images of {network.img_size} px in '
            f'{network.patch_resolution} patches; fit takes square ones'
        )


def _refusal(kind: str, wrong: list[str], name: str) -> CheckpointError:
    return CheckpointError(
        f'{name} does not match the {kind} built by fit: {len(wrong)} '
        f'parameters differ ({join_first(wrong, 6)}); {TAKEN}'
    )


def _of_fit(settings: dict, network: BaseBackbone) -> dict:
    """Drop the settings chosen by fit, and expand the name of the arch."""
    kind, kept = type(network), dict(settings)
    kept.pop('img_size', None)
    arch = kept.setdefault('arch', signature(kind).parameters['arch'].default)
    if not isinstance(arch, dict):
        kept['arch'] = kind.arch_zoo[arch.lower()]
    if settings['type'] == RESMLP:  # needs a fixed size
        kept['img_size'] = network.img_size[0]
    return kept


def assumed_heads(checkpoint: dict, backbone: dict) -> str:
    """Describe the head count assumed by :func:`backbone_of`.

    ViT shapes do not determine it. Empty if it is known.
    """
    source, arch = source_of(weights_of(checkpoint)), backbone['arch']
    width = arch['embed_dims']
    if backbone['type'] != VIT or known_heads(source, width):
        return ''
    return (
        f'{source.name} does not store its number of attention heads; '
        f'assuming {arch["num_heads"]} for embed_dims={width}; for another '
        'number, add the config (publish_model.py --config CONFIG)'
    )


def _with_heads(settings: dict, source: WeightSource) -> dict:
    """Use the head count from the file, if known."""
    arch = settings['arch']
    heads = known_heads(source, arch['embed_dims'])
    if heads and 'num_heads' in arch:
        arch['num_heads'] = heads
    return settings
