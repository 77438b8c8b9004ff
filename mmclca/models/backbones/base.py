# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Parts that all backbones share: architectures, foreign weights, depths."""

from collections.abc import Collection

from mmcv.cnn.bricks import DropPath
from mmpretrain.models.backbones.base_backbone import BaseBackbone
from torch import nn

from mmclca.checkpoints.loading import load_into_backbone, load_into_classifier
from mmclca.utils.messages import integer, one_of

SIZES = ('embed_dims', 'num_layers', 'num_heads', 'feedforward_channels')


def settings_of(
    arch: str | dict, zoo: dict[str, dict], sizes: Collection[str] = SIZES
) -> dict:
    """Return the sizes of an architecture, and refuse unknown ones."""
    if not isinstance(arch, dict):
        one_of(zoo, arch=str(arch).lower())
        return zoo[str(arch).lower()]
    for name in arch:
        one_of(sizes, arch=name)
    missing = [name for name in sizes if name not in arch]
    if missing:
        raise ValueError(f'arch={arch!r}: missing {", ".join(missing)}')
    heads, dims = arch.get('num_heads', 1), arch['embed_dims']
    integer(num_heads=heads)
    if dims % heads:
        raise ValueError(
            f'arch: embed_dims={dims} is not divisible by num_heads={heads}; '
            'choose a number of heads that divides it'
        )
    return arch


def first_layers(
    settings: dict, depth: int | None
) -> tuple[dict, tuple[str, ...]]:
    """Cut an architecture after some layers.

    Also gives what names of the weights that are left out begin with.
    """
    if depth is None:
        return settings, ()
    total = settings['num_layers']
    integer(most=total, depth=depth)
    left = tuple(f'layers.{layer}.' for layer in range(depth, total))
    return dict(settings, num_layers=depth), left


def set_drop_path(model: nn.Module, rate: float | None = None) -> None:
    """Set all rates of stochastic depth, in place; None: those they are.

    They become plain floats: mmpretrain's are numpy's, which break
    ``torch.compile(fullgraph=True)``.
    """
    for part in model.modules():
        if isinstance(part, DropPath):
            part.drop_prob = float(part.drop_prob if rate is None else rate)


class ForeignWeights:
    """Mixin over mmpretrain's ``BaseBackbone``: it loads releases by name.

    Weights of timm and of other releases are renamed when they are loaded,
    into the backbone or into its classifier, and weights from a file that
    are not of this backbone are refused. A backbone has ``embed_dims`` and
    ``layers``, ``patch_resolution`` (its grid) where it has positions, and
    calls :meth:`rename_on_load` in its ``__init__``.
    """

    # parameters that weights of others need not have; all else decides what
    # the model computes
    may_be_new = ()
    may_be_left = ()  # what of their weights has no place here on purpose
    # tokens whose rows of positions, if they have any, come before the patches
    may_have_position = ('cls_token', 'dist_token')
    # for messages: its settings, and why its tokens cannot be reduced
    shaped_by = 'arch, img_size and patch_size'
    why_not_reducible = ''
    # for layer-wise learning rates: what names of parameters before the
    # layers begin with, and its lists of layers, in their order
    embedding = ('patch_embed.', 'pos_embed', 'cls_token')
    stacks = ('layers',)
    frozen_stages = -1  # others have a method ``_freeze_stages``

    def rename_on_load(self) -> None:
        """Take weights by the names of releases from now on."""
        self._register_load_state_dict_pre_hook(self._load_hook)

    def adapt_state_dict(self, state_dict: dict, prefix: str) -> list[str]:
        """Bring weights into the form of the backbone, in place.

        Args:
            state_dict (dict): Weights by the names of the backbone.
            prefix (str): What these begin with.

        Returns:
            list[str]: What was changed, in words. Here there is nothing.
        """
        return []

    def train(self, mode: bool = True) -> 'ForeignWeights':
        """Set the mode, keep frozen layers in eval mode, return self."""
        super().train(mode)
        if mode and self.frozen_stages > 0:
            self._freeze_stages()
        return self

    def get_layer_depth(
        self, param_name: str, prefix: str = ''
    ) -> tuple[int, int]:
        """Number the depth of a parameter for layer-wise learning
        rates.

        Returns:
            tuple[int, int]: 0 for the embedding, layers from 1, the last for
            all else; and the number of depths, as in mmpretrain's
            ``VisionTransformer``.
        """
        name = param_name.removeprefix(prefix)
        layers = [
            f'{stack}.{layer}.'
            for stack in self.stacks
            for layer in range(len(getattr(self, stack)))
        ]
        starts = (self.embedding, *layers, '')
        found = (i for i, start in enumerate(starts) if name.startswith(start))
        return next(found), len(starts)

    def _load_hook(self, state_dict, prefix, metadata, *_):
        load_into_backbone(self, state_dict, prefix, metadata)

    def _prepare_pos_embed(self, *_):
        """mmpretrain's load hook, in whose place is the one above"""

    def _checkpoint_filter(self, state_dict, prefix, metadata, *_):
        """Load hook that mmpretrain's classifiers put on themselves."""
        load_into_classifier(state_dict, prefix, metadata)


def fuse(model: nn.Module) -> nn.Module:
    """Join, in place, what backbones need not compute apart, for inference.

    Layers with n branches become plain layers of n x h heads, affine maps of
    ResMLP become a part of its linear layers. Outputs stay the same up to
    rounding; names of parameters do not, so that checkpoints of the model no
    longer fit. What has nothing to join stays as it is.

    Args:
        model (nn.Module): A classifier, or anything that has backbones in it.

    Returns:
        nn.Module: The model.
    """
    for backbone in fusible(model):
        backbone.fuse()
    return model


def fusible(model: nn.Module) -> list[BaseBackbone]:
    """Backbones with a method ``fuse``: it replaces modules in place.

    Args:
        model (nn.Module): See :func:`fuse`.
    """
    return [
        module
        for module in model.modules()
        if isinstance(module, BaseBackbone) and hasattr(module, 'fuse')
    ]
