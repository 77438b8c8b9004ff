# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Any network in timm, with the feature map of each stage as output."""

from functools import cached_property
from typing import Any

import timm
from mmpretrain.models.backbones.base_backbone import BaseBackbone
from timm.layers import to_2tuple
from timm.models import group_parameters
from timm.utils import reparameterize_model
from torch import Tensor, nn

from mmclca.checkpoints.error import CheckpointError
from mmclca.checkpoints.rename import list_names
from mmclca.checkpoints.report import LoadReport
from mmclca.errors import Error
from mmclca.registry import MODELS
from mmclca.utils.messages import did_you_mean, join_first

from .base import ForeignWeights

DEPTH = 12  # of the ViTs for which layer-wise learning rates were chosen
# parts after the last stage, by class, that older versions of timm keep
_AFTER_STAGES = dict(
    Cait='cls_token',
    ConvNeXt='head.norm',
    RDNet='head.norm',
    FastVit='final_conv',
    VOLO='cls_token',
    Xcit='cls_token',
)


@MODELS.register_module()
class TimmStages(ForeignWeights, BaseBackbone):
    """Network in timm that returns the feature map of each stage.

    For every architecture with ``forward_intermediates``: MobileNet,
    MobileOne, FastViT, EfficientNet, ConvNeXt, RegNet, ResNet, Swin,
    hierarchical and plain ViTs. Weights load with timm's names, and must
    match exactly, except for the classifier.

    Args:
        arch (str): Name of the architecture in timm, such as 'mobileone_s0'.
        img_size (int, optional): Image size; only costs depend on it if the
            architecture accepts any. Defaults to None, the size in timm.
        fused (bool): Whether the branches of reparameterizable blocks are
            merged, as in files of fused networks. Defaults to False.
        init_cfg (dict, optional): See ``BaseModule``. Defaults to None.

    Raises:
        Error: If the architecture is not in timm, or the installed version
            of timm cannot return its stages.
    """

    may_be_new = ()
    shaped_by = 'arch, img_size and fused'
    why_not_reducible = 'networks of timm have no tokens to reduce'

    def __init__(
        self,
        arch: str,
        img_size: int | None = None,
        fused: bool = False,
        init_cfg: dict | None = None,
    ):
        super().__init__(init_cfg)
        known = timm.list_models()
        if arch not in known:  # other names download or open files
            hint = did_you_mean(arch, known, limit=3)
            raise Error(f'arch={arch!r} is not in timm{hint}')
        size: dict[str, Any] = {}
        if img_size and has_size(arch):
            size['img_size'] = img_size
        net: Any = timm.create_model(arch, **size)
        if not hasattr(net, 'prune_intermediate_layers'):
            raise Error(
                f'timm {timm.__version__} cannot return the stages of '
                f'arch={arch!r}; install a later version (pip install '
                '--upgrade timm), or choose another network'
            )
        self.arch, self.fused, self.net = arch, False, net
        self.img_size = to_2tuple(img_size or net.default_cfg['input_size'][1])
        if fused:
            self.fuse()
        self.channels = [stage['num_chs'] for stage in net.feature_info]
        names = {*self.net.state_dict()}
        self._prune()
        # classifier and other layers after the last stage
        self.unused = names - {*self.net.state_dict()}
        self.embed_dims = self.channels[-1]
        self.rename_on_load()

    def _prune(self) -> None:
        """Remove what no stage uses: distributed training refuses it."""
        self.net.prune_intermediate_layers(
            None, prune_norm=True, prune_head=True
        )
        later = _AFTER_STAGES.get(type(self.net).__name__)
        if later is not None:
            parent, _, name = later.rpartition('.')
            unused = None if name == 'cls_token' else nn.Identity()
            setattr(self.net.get_submodule(parent), name, unused)

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        """Map images (B, 3, H, W) to one map (B, C, h, w) per stage."""
        maps = self.net.forward_intermediates(x, intermediates_only=True)
        # before timm 1.0.16, ConvNeXt also returns its stem
        return tuple(maps[-len(self.channels) :])

    def fuse(self) -> 'TimmStages':
        """Merge the branches of reparameterizable blocks, in place."""
        if not self.fused:
            self.net, self.fused = reparameterize_model(self.net), True
        return self

    def rename_state_dict(self, weights: dict, prefix: str) -> list[str]:
        """See :class:`ForeignWeights`; weights of timm lose their classifier.

        Converted files often lack the step counters of batch norms. No
        output depends on them, so the network keeps its own.
        """
        names = list_names(weights, prefix)
        if any(x.startswith(('backbone.net.', 'net.')) for x in names):
            return []
        tensors = {name: weights.pop(prefix + name) for name in names}
        for name, value in self.rename(tensors).items():
            weights[f'{prefix}backbone.{name}'] = value
        return []

    def rename(self, weights: dict) -> dict:
        """Rename weights of timm, except for the classifier."""
        counters = {
            name: value
            for name, value in self.state_dict().items()
            if name.endswith('.num_batches_tracked')
        }
        items, unused = weights.items(), self.unused
        return counters | {f'net.{x}': y for x, y in items if x not in unused}

    def adapt_state_dict(
        self, weights: dict, prefix: str, report: LoadReport
    ) -> None:
        """See :class:`ForeignWeights`; weights must match exactly."""

    def _is_part(self, weights: dict) -> bool:
        """Return False: weights must match exactly."""
        return False

    def refuse_weights(
        self, source: str, file_names: list[str], mismatches: list[str]
    ) -> CheckpointError:
        """See :class:`ForeignWeights`."""
        return CheckpointError(
            f'{source} does not match {self.arch} in timm: {len(mismatches)} '
            f'parameters differ ({join_first(mismatches, 6)}); set `arch` to '
            'the network that these weights belong to'
        )

    def get_layer_depth(
        self, param_name: str, prefix: str = ''
    ) -> tuple[int, int]:
        """See :class:`ForeignWeights`.

        Depths are timm's groups, 4 to 43 of them, scaled to 0 to ``DEPTH``.
        """
        name = param_name.removeprefix(f'{prefix}net.')
        if name not in self._depths:
            return DEPTH + 1, DEPTH + 2
        last = max(self._depths.values())
        return self._depths[name] * DEPTH // last, DEPTH + 2

    @cached_property
    def _depths(self) -> dict[str, int]:
        """Group of each parameter in timm's layer-wise learning rates."""
        matcher = self.net.group_matcher()
        return group_parameters(self.net, matcher, reverse=True)


def has_size(arch: str) -> bool:
    """Return whether an architecture in timm has a fixed image size."""
    config = timm.get_pretrained_cfg(arch)
    return config is not None and config.fixed_input_size
