# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""The network that weights are of, read out of names and shapes.

Names are those of the backbones; a KeyError is a name that a release has. All
else of CaiT, ResMLP and PatchConvNet (heads, eps, where CLS enters) is in the
config that training stores; without one it is as in the releases, LayerScale
replaced on load. What would be built is checked against the file.
"""

from inspect import signature
from math import isqrt

from mmpretrain.models.backbones.base_backbone import BaseBackbone
from torch import Tensor

from mmclca.registry import MODELS
from mmclca.utils.messages import first_of

from .error import CheckpointError
from .loading import compare_weights, wrong_parameters
from .releases import (
    heads_of_release,
    rename_to_backbone,
    source_of,
    weights_of,
)
from .sizes import building_within
from .stored import stored_backbone

# channels of a head, but for the models whose heads are wider
HEAD_DIMS, WIDE = 64, {1280: 16, 1408: 16, 1664: 16}
PATCHES = 'patch_embed.projection.weight'
FFN = 'layers.0.ffn.layers.0.0.weight'
VIT = 'mmclca.TokenReductionViT'
RESMLP = 'mmclca.ResMLP'
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
    kind, read = next((READERS[key] for key in READERS if key in own), PLAIN)
    try:
        settings = _stored(checkpoint, kind) or dict(
            _with_heads(read(own), checkpoint), type=kind
        )
    except KeyError as error:
        raise _refusal(kind, [f'{error.args[0]} is missing'], name) from error
    except IndexError as error:
        shapes = ['a tensor has too few dimensions']
        raise _refusal(kind, shapes, name) from error
    settings = {k: v for k, v in settings.items() if k not in FIXED}
    with building_within(own, name):
        network = MODELS.build(settings)
    _compare(network, settings['type'], own, name)
    return _of_fit(settings, network)


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
    kinds = [kind for kind, _ in READERS.values()]
    return stored if stored.get('type') in kinds else None


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


def _vit(own: dict) -> dict:
    """Read the settings of a ViT, DeiT or DINOv2."""
    rows = own['pos_embed'].size(1)
    heads = _heads(own['cls_token'].size(-1))
    backbone = _image(own, rows, _transformer(own, heads))
    backbone['norm_cfg'] = dict(type='LN', eps=1e-6)
    if 'layers.0.attn.qkv.bias' not in own:
        backbone['qkv_bias'] = False
    if 'layers.0.attn.gamma1.weight' in own:
        backbone['layer_scale_init_value'] = 1e-5  # replaced on load
    if 'register_tokens' in own:
        backbone['num_registers'] = own['register_tokens'].size(1)
    if isqrt(rows) ** 2 == rows:
        backbone['with_cls_pos'] = False
    return backbone


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


def _heads(width: int) -> int:
    heads = WIDE.get(width, width / HEAD_DIMS)
    if heads % 1:
        raise CheckpointError(
            f'cannot infer the number of heads: embed_dims={width} is not a '
            f'multiple of {HEAD_DIMS}; use a checkpoint with its config'
        )
    return int(heads)


def _cait(own: dict) -> dict:
    """Read the settings of a ``CaiT``."""
    heads = own['layers.0.attn.mix_logits.weight'].size(0)
    arch = _transformer(own, heads)
    return _image(own, own['pos_embed'].size(1), arch)


def _resmlp(own: dict) -> dict:
    """Read the settings of a ``ResMLP``, which takes images of one size."""
    arch = _sizes(own, 'layers.0.norm1.alpha')
    ending = 'class_mlp' if 'class_layers.0.mix.weight' in own else 'average'
    rows = own['layers.0.mix.weight'].size(0)
    return dict(_image(own, rows, arch), ending=ending)


def _patch_convnet(own: dict) -> dict:
    """Read the settings of a ``PatchConvNet``."""
    return dict(arch=_sizes(own, 'pool.cls_token'))


def _image(own: dict, rows: int, arch: dict) -> dict:
    """Write the settings of a network for images of so many patches."""
    patch = own[PATCHES].size(2)
    return dict(arch=arch, patch_size=patch, img_size=isqrt(rows) * patch)


def _transformer(own: dict, heads: int) -> dict:
    sizes, hidden = _sizes(own, 'cls_token'), own[FFN].size(0)
    return dict(sizes, num_heads=heads, feedforward_channels=hidden)


def _sizes(own: dict, token: str) -> dict:
    """Read the width of a parameter's channels, and count the layers."""
    layers = {key.split('.')[1] for key in own if key.startswith('layers.')}
    return dict(embed_dims=own[token].size(-1), num_layers=len(layers))


# types and readers, by parameters that no other network has
READERS = {
    'class_layers.0.attn.q.weight': ('mmclca.CaiT', _cait),
    'layers.0.attn.mix_logits.weight': ('mmclca.CaiT', _cait),
    'layers.0.mix.weight': (RESMLP, _resmlp),
    'layers.0.norm1.alpha': (RESMLP, _resmlp),
    'layers.0.depthwise.weight': ('mmclca.PatchConvNet', _patch_convnet),
}
PLAIN = VIT, _vit
