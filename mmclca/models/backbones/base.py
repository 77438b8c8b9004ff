# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Shared by all backbones: architectures, checkpoint loading, layer depths."""

from collections.abc import Callable, Collection, Sequence
from typing import Any

from mmcv.cnn.bricks import DropPath
from mmpretrain.models.backbones.base_backbone import BaseBackbone
from mmpretrain.models.peft.lora import LoRALinear
from torch import Tensor, nn

from mmclca.checkpoints.checkpoint import unwrap_in_place
from mmclca.checkpoints.compare import compare_weights
from mmclca.checkpoints.error import CheckpointError
from mmclca.checkpoints.rename import (
    keep_backbone,
    list_names,
    rename_to_classifier,
)
from mmclca.checkpoints.report import LoadReport
from mmclca.errors import Error
from mmclca.utils.messages import check_choice, check_integer, join_first

from ..layers.class_attention import check_heads
from ..pretrained import use_safe_initializer
from .classifier_hook import watch_classifiers
from .position_weights import explain_rows, fit_positions, take_prefix

# tokens that a backbone may lack
MAY_BE_LEFT = ('cls_token', 'mask_token')
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


class ForeignWeights(nn.Module):
    """Mixin over mmpretrain's ``BaseBackbone``: loads released checkpoints.

    :func:`mmclca.checkpoints.load.load` calls its methods. For the loaders of
    MMEngine, MMPretrain and torch, a load hook calls them, and refuses
    networks that do not match the backbone. A backbone needs ``embed_dims``,
    ``layers`` and, if it has positions, ``patch_resolution`` (the patch grid),
    and calls :meth:`rename_on_load` in its ``__init__``.
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
    arch_settings: dict[str, Any]
    arch_zoo: dict[str, dict]
    embed_dims: int
    layers: Any  # torch declares parts of a layer as tensors or modules
    patch_resolution: tuple[int, int]
    _freeze_stages: Callable[[], None]
    has_weights = False  # whether complete weights were loaded

    @property
    def all_layers(self) -> Sequence[Any]:
        """Layers in the order of the forward pass; by default ``layers``."""
        return self.layers

    def rename_on_load(self) -> None:
        """Register the load hook that renames parameters.

        A classifier around the backbone gets one, too. An ``init_cfg`` with a
        checkpoint is loaded by :class:`.Pretrained`.
        """
        watch_classifiers()
        self.init_cfg = use_safe_initializer(self.init_cfg)
        self._register_load_state_dict_pre_hook(self._load_hook)

    def rename_state_dict(self, weights: dict, prefix: str) -> list[str]:
        """Rename weights of a release for a classifier, in place.

        Args:
            weights (dict): Weights with the names of the file.
            prefix (str): Prefix of these names.

        Returns:
            list[str]: Names that were dropped.
        """
        return rename_to_classifier(weights, prefix)

    def adapt_state_dict(
        self, weights: dict[str, Tensor], prefix: str, report: LoadReport
    ) -> None:
        """Fit positions, tokens and layers with LoRA to the backbone.

        Args:
            weights (dict[str, Tensor]): Weights with the names of the
                backbone, changed in place.
            prefix (str): Prefix of these names.
            report (LoadReport): Gets resized and added parameters.
        """
        fit_positions(self, weights, prefix, report)
        for name, layer in self.named_modules():
            if isinstance(layer, LoRALinear):
                rename_to_original(weights, f'{prefix}{name}.')

    def list_mismatches(self, weights: dict, prefix: str) -> list[str]:
        """List the parameters that differ from weights, with the reason.

        Names in ``may_be_new`` and ``may_be_left`` are accepted.

        Args:
            weights (dict): Weights with the names of the backbone.
            prefix (str): Prefix of these names.
        """
        differences = compare_weights(self.state_dict(), weights, prefix)
        if 'pos_embed' in differences.unfit:
            tensors = take_prefix(weights, prefix)
            differences.unfit['pos_embed'] += explain_rows(self, tensors)
        return differences.describe(
            self.may_be_new,
            (*self.may_be_new, *self.may_be_left, *MAY_BE_LEFT),
        )

    def refuse_weights(
        self, source: str, file_names: list[str], mismatches: list[str]
    ) -> CheckpointError:
        """Return the error for weights of another network.

        Args:
            source (str): Name of the checkpoint.
            file_names (list[str]): Parameter names in it.
            mismatches (list[str]): Result of :meth:`list_mismatches`.
        """
        return CheckpointError(
            f'{source} does not match {type(self).__name__} (embedding '
            f'dimension {self.embed_dims}, {len(self.layers)} layers): '
            f'{len(mismatches)} parameters differ '
            f'({join_first(mismatches, 6)}); first keys of the file: '
            f'{join_first(file_names, 6) or "none"}; use weights of this '
            f'architecture, or set {self.shaped_by} as in the file'
        )

    def _load_hook(self, state_dict: dict, prefix: str, *_) -> None:
        """Rename and adapt weights that another program loads.

        Its report of other weights is a line in the log, or none, and the
        model would stay random: they are refused. Only parts of a network
        that is loaded already, by their names, are left to the loader.
        """
        unwrap_in_place(state_dict)
        report = LoadReport('the weights', list_names(state_dict, prefix))
        if prefix and not report.file_names:
            return  # other parts of a model
        self.rename_state_dict(state_dict, prefix)
        keep_backbone(state_dict, prefix)
        self.adapt_state_dict(state_dict, prefix, report)
        mismatches = self.list_mismatches(state_dict, prefix)
        part = take_prefix(state_dict, prefix)
        if not mismatches:
            self.has_weights = True
        elif self._is_part(part):
            self.check_part([*part])
        else:
            raise self.refuse_weights(
                report.source, report.file_names, mismatches
            )

    def check_part(self, names: list[str]) -> None:
        """Refuse a part of a network if the backbone would stay random.

        Args:
            names (list[str]): Parameter names of the part.

        Raises:
            CheckpointError: If complete weights were never loaded.
        """
        if not self.has_weights:
            raise CheckpointError(
                f'the weights are a part of a network ({len(names)} '
                f'parameters: {join_first(names, 3)}), and '
                f'{type(self).__name__} has no other weights; load complete '
                'weights first, use mmclca.checkpoints.load.load(model, FILE)'
                ' for a file that SaveTrainableHook wrote, or pass '
                'model.state_dict() | part to load_state_dict'
            )

    def _is_part(self, weights: dict) -> bool:
        """Return whether weights fit, and lack the patch embedding."""
        tensors = self.state_dict()
        return bool(weights) and all(
            name in tensors
            and value.shape == tensors[name].shape
            and not (name.startswith('patch_embed.') and value.ndim > 1)
            for name, value in weights.items()
        )

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
        starts: list[str | tuple[str, ...]] = [self.embedding, *layers, '']
        depths = (i for i, s in enumerate(starts) if param_name.startswith(s))
        return next(depths), len(starts)

    def _prepare_pos_embed(self, *_):
        """Replace mmpretrain's load hook, superseded by ``_load_hook``."""


def rename_to_original(weights: dict, prefix: str, *_) -> None:
    """Rename plain linear weights to those inside a layer with LoRA.

    Args:
        weights (dict): Weights, changed in place.
        prefix (str): Prefix of the layer.
    """
    for name in ('weight', 'bias'):
        if prefix + name in weights:
            value = weights.pop(prefix + name)
            weights[f'{prefix}original_layer.{name}'] = value


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
