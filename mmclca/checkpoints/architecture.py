# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""The network that weights are of, read out of names and shapes.

Names are those of the backbones; a KeyError is a name that a release has. All
else of CaiT, ResMLP and PatchConvNet (heads, eps, where CLS enters) is in the
config that training stores; without one it is as in the releases, LayerScale
replaced on load. What would be built is checked against the file.
"""

from inspect import signature

from mmpretrain.models.backbones.base_backbone import BaseBackbone
from torch import Tensor

from mmclca.registry import MODELS
from mmclca.utils.messages import first_of

from .contents import building_within
from .error import CheckpointError
from .families import NETWORKS, deit, network_of, vit
from .loading import compare_weights, wrong_parameters
from .releases import (
    heads_of_release,
    rename_to_backbone,
    source_of,
    weights_of,
)
from .stored import stored_backbone

VIT = vit.NETWORK.type
RESMLP = deit.RESMLP.backbone.type
# encoders of pre-training, and of their settings those of a classifier's
PRETRAINED = ('MoCoV3ViT', 'mmclca.SegmentedMAEViT')
WITH_HEADS = ('VisionTransformer', VIT, *PRETRAINED)
SHARED = ('arch', 'img_size', 'patch_size', 'norm_cfg', 'stem')
# in what its images and head leave no choice
FIXED = ('in_channels', 'multiclass')
TAKEN = (
    'fit supports ViT, DeiT and DINOv2 with a CLS token, and CaiT, ResMLP and '
    'PatchConvNet in the format of their releases, or with the config in the '
    'checkpoint, as tools/train.py writes it'
)


def backbone_of(checkpoint: dict) -> dict:
    """Infer the backbone settings from the weights of an opened file.

    Returns ``type``, ``arch`` and the other required settings; ``img_size``
    only if the backbone accepts a single image size.

    Raises:
        CheckpointError: If the architecture is not supported.
        ValueError: If the stored config is more than plain settings.
    """
    named = weights_of(checkpoint)
    name = source_of(named).name
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
            _with_heads(network.settings(own), checkpoint), type=network.type
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
    """Read the settings of a whole network that the file stores, if any."""
    try:
        stored = stored_backbone(checkpoint) or {}
    except ValueError:
        if kind != VIT:
            raise
        return None  # of another network, whose config is not needed
    if stored.get('type') in PRETRAINED:
        return {k: stored[k] for k in SHARED if k in stored} | dict(type=VIT)
    known = [network.type for network in NETWORKS]
    return stored if stored.get('type') in known else None


def _compare(network: BaseBackbone, kind: str, own: dict, name: str) -> None:
    """Refuse weights of another architecture, or for non-square images."""
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
        f'parameters differ ({first_of(wrong, 6)}); {TAKEN}'
    )


def _of_fit(settings: dict, network: BaseBackbone) -> dict:
    """Leave out what fit chooses, and write the arch in numbers."""
    kind, kept = type(network), dict(settings)
    kept.pop('img_size', None)
    arch = kept.setdefault('arch', signature(kind).parameters['arch'].default)
    if not isinstance(arch, dict):
        kept['arch'] = kind.arch_zoo[arch.lower()]
    if settings['type'] == RESMLP:  # it takes no other
        kept['img_size'] = network.img_size[0]
    return kept


def assumed_heads(checkpoint: dict, backbone: dict) -> str:
    """Describe the number of heads assumed by :func:`backbone_of`.

    Shapes do not determine the number of heads of a ViT. Empty if the number
    is known.
    """
    source, arch = source_of(weights_of(checkpoint)), backbone['arch']
    width = arch['embed_dims']
    if backbone['type'] != VIT or _known_heads(checkpoint, width):
        return ''
    return (
        f'{source.name} does not store its number of attention heads; '
        f'assuming {arch["num_heads"]} for embed_dims={width}; for another '
        'number, add the config (publish_model.py --config CONFIG)'
    )


def _with_heads(settings: dict, checkpoint: dict) -> dict:
    """Correct the number of heads if the file tells it."""
    arch = settings['arch']
    heads = _known_heads(checkpoint, arch['embed_dims'])
    if heads and 'num_heads' in arch:
        arch['num_heads'] = heads
    return settings


def _known_heads(checkpoint: dict, width: int) -> int | None:
    """Number of heads by the names in the file or its stored config."""
    source = source_of(weights_of(checkpoint))
    known = heads_of_release(source.keys, width, source.arch)
    try:
        stored = stored_backbone(checkpoint) or {}
    except ValueError:
        return known  # the config of another network
    arch = stored.get('arch')
    if known or arch is None or stored.get('type') not in WITH_HEADS:
        return known
    if isinstance(arch, str):
        arch = MODELS.get(stored['type']).arch_zoo.get(arch.lower(), {})
    return arch.get('num_heads')
