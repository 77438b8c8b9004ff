# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Shared by all backbones: architectures, checkpoint loading, layer depths."""

from collections.abc import Collection
from inspect import currentframe
from traceback import walk_stack

from mmcv.cnn.bricks import DropPath
from mmpretrain.models.backbones.base_backbone import BaseBackbone
from mmpretrain.models.classifiers import ImageClassifier
from torch import nn

from mmclca.checkpoints.load import load_into_backbone, load_into_classifier
from mmclca.errors import Error
from mmclca.utils.messages import check_choice, check_integer

from ..layers.class_attention import check_heads

SIZES = ('embed_dims', 'num_layers', 'num_heads', 'feedforward_channels')


def settings_of(
    arch: str | dict, zoo: dict[str, dict], sizes: Collection[str] = SIZES
) -> dict:
    """Return the sizes of an architecture.

    Args:
        arch (str | dict): Name in ``zoo``, in upper or lower case, or sizes.
        zoo (dict[str, dict]): Sizes of all named architectures.
        sizes (Collection[str]): Names of the required sizes.

    Raises:
        Error: If the name or a size is unknown, a size is missing, or the
            number of heads does not divide the embedding dimension.
    """
    if not isinstance(arch, dict):
        check_choice(zoo, arch=str(arch).lower())
        return zoo[str(arch).lower()]
    for name in arch:
        check_choice(sizes, arch=name)
    missing = [name for name in sizes if name not in arch]
    if missing:
        raise Error(f'arch={arch!r}: missing {", ".join(missing)}')
    check_heads(arch['embed_dims'], arch.get('num_heads', 1))
    return arch


def first_layers(
    settings: dict, depth: int | None
) -> tuple[dict, tuple[str, ...]]:
    """Truncate an architecture to its first ``depth`` layers.

    Also return the parameter prefixes of the omitted layers. A ``depth`` of
    None omits no layer.
    """
    if depth is None:
        return settings, ()
    total = settings['num_layers']
    check_integer(maximum=total, depth=depth)
    left = tuple(f'layers.{layer}.' for layer in range(depth, total))
    return dict(settings, num_layers=depth), left


def set_drop_path(model: nn.Module, rate: float | None = None) -> None:
    """Set the same stochastic depth rate everywhere, in place.

    ``rate`` None keeps the current rates. In either case, they become plain
    floats: mmpretrain's NumPy floats break ``torch.compile(fullgraph=True)``.
    """
    for part in model.modules():
        if isinstance(part, DropPath):
            part.drop_prob = float(part.drop_prob if rate is None else rate)


class ForeignWeights:
    """Mixin over mmpretrain's ``BaseBackbone``: loads released checkpoints.

    Parameters from timm and other releases are renamed on load, for the
    backbone or its classifier. Checkpoints that do not match the backbone are
    refused. A backbone needs ``embed_dims``, ``layers`` and, if it has
    positions, ``patch_resolution`` (the patch grid), and calls
    :meth:`rename_on_load` in its ``__init__``.
    """

    # prefixes of parameters that a checkpoint may lack
    may_be_new = ()
    may_be_left = ()  # prefixes of checkpoint parameters to ignore
    # tokens with optional rows in ``pos_embed``, before the patches
    may_have_position = ('cls_token', 'dist_token')
    # for error messages: shape settings; reason for missing token reduction
    shaped_by = 'arch, img_size and patch_size'
    why_not_reducible = ''
    # for layer-wise learning rates: prefixes of the embedding's parameters,
    # and the lists of layers in order
    embedding = ('patch_embed.', 'pos_embed', 'cls_token')
    layer_lists = ('layers',)
    frozen_stages = -1  # a larger number needs ``_freeze_stages``

    def rename_on_load(self) -> None:
        """Register the load hook that renames parameters."""
        self._register_load_state_dict_pre_hook(self._load_hook)

    def adapt_state_dict(self, state_dict: dict, prefix: str) -> list[str]:
        """Adapt a state dict to the backbone, in place; here a no-op.

        Args:
            state_dict (dict): Weights with the backbone's parameter names.
            prefix (str): Prefix of these names.

        Returns:
            list[str]: Descriptions of the changes.
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
        """Return the depth of a parameter, for layer-wise learning rates.

        Returns:
            tuple[int, int]: The depth (0 for the embedding, layers from 1, the
            last for all other parameters) and the number of depths, as in
            mmpretrain's ``VisionTransformer``.
        """
        param_name = param_name.removeprefix(prefix)
        layers = [
            f'{name}.{layer}.'
            for name in self.layer_lists
            for layer in range(len(getattr(self, name)))
        ]
        starts = (self.embedding, *layers, '')
        depths = (i for i, s in enumerate(starts) if param_name.startswith(s))
        return next(depths), len(starts)

    def _load_hook(self, state_dict, prefix, metadata, *_):
        load_into_backbone(self, state_dict, prefix, metadata)

    def _prepare_pos_embed(self, *_):
        """Replace mmpretrain's load hook, superseded by ``_load_hook``."""

    def _checkpoint_filter(self, state_dict, prefix, metadata, *_):
        """Rename the weights of a classifier, including its head.

        A load hook that mmpretrain's classifiers register on themselves.
        """
        # torch does not pass the classifier to its hooks
        stack = [f.f_locals.get('self') for f, _ in walk_stack(currentframe())]
        owners = (x for x in stack if isinstance(x, ImageClassifier))
        load_into_classifier(next(owners, None), state_dict, prefix, metadata)


def fuse(model: nn.Module) -> nn.Module:
    """Merge parallel and affine layers for inference, in place.

    Layers with n branches become plain layers with n x h heads; affine maps
    are folded into the linear layers of ResMLP. Outputs are equal up to
    rounding. Parameter names change, so checkpoints no longer fit. Modules
    without such layers do not change.

    Args:
        model (nn.Module): A classifier, or any module with backbones.

    Returns:
        nn.Module: The model.
    """
    for backbone in fusible(model):
        backbone.fuse()
    return model


def fusible(model: nn.Module) -> list[BaseBackbone]:
    """Return the backbones in a model with a method ``fuse``.

    Args:
        model (nn.Module): See :func:`fuse`.
    """
    return [
        module
        for module in model.modules()
        if isinstance(module, BaseBackbone) and hasattr(module, 'fuse')
    ]
