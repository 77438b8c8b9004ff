# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Base class of TransFG, FFVT and SIM-Trans."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from mmengine.model import ModuleList
from mmpretrain.models.backbones import VisionTransformer
from mmpretrain.models.utils import to_2tuple
from torch import Tensor, nn

from mmclca.checkpoints.error import CheckpointError
from mmclca.checkpoints.report import LoadReport
from mmclca.errors import Error
from mmclca.utils.messages import check_choice, check_integer

from ..backbones import Reducible, ViTEmbedding
from ..backbones.base import set_drop_path, settings_of
from ..reduction.attention import Attended
from ..reduction.tokens import Tokens

# options of ``VisionTransformer`` that have an effect here
OPTIONS = (
    'in_channels',
    'drop_rate',
    'drop_path_rate',
    'qkv_bias',
    'norm_cfg',
    'interpolate_mode',
    'layer_scale_init_value',
    'pre_norm',
    'init_cfg',
    'frozen_stages',
)


@dataclass
class ObservedTokens(Tokens):
    """Tokens with what a baseline collects in earlier layers.

    Args:
        attended (list[Attended]): Queries, keys and values of the layers so
            far, until a baseline removes them.
        collected (list): Values that a baseline keeps for the last block.
    """

    attended: list[Attended] = field(default_factory=list, kw_only=True)
    collected: list = field(default_factory=list, kw_only=True)

    def replace(self, **changes: Any) -> 'Tokens':
        """See :class:`Tokens`."""
        values = self.values()
        values.update(changes)
        return ObservedTokens(**values)

    def values(self) -> dict[str, Any]:
        """See :class:`Tokens`."""
        own_values = dict(attended=self.attended, collected=self.collected)
        return super().values() | own_values


class BaselineViT(ViTEmbedding, Reducible, VisionTransformer):
    """Base of vision transformers with a special last block.

    The last block is ``last_layers[0]`` and not in ``layers``; no norm
    precedes it. Pictures, recordings and costs of :class:`Reducible` include
    it. No reducer can be added. Weights from the public codes, timm and other
    releases are renamed on load.

    Args:
        arch (str | dict): Name of an architecture in ``VisionTransformer``,
            or a dict with ``embed_dims``, ``num_layers``, ``num_heads`` and
            ``feedforward_channels``; the last block counts as a layer.
            Defaults to 'base'.
        img_size (int | tuple[int, int]): Image height and width in pixels.
            Defaults to 224.
        patch_size (int | tuple[int, int]): Patch height and width in pixels.
            Defaults to 16.
        stride (int | tuple[int, int], optional): Distance between patches in
            pixels; patches overlap if it is less than ``patch_size``.
            Defaults to None, ``patch_size``.
        last_block (str): Initial last block when plain ViT weights are loaded:
            'new' for random initialization, as in the public codes;
            'pretrained' for their last block. Defaults to 'new'.
        **vit: ``in_channels``, ``drop_rate`` (after the embedding and in
            FFNs; 0.1 in the public codes), ``drop_path_rate``, ``qkv_bias``,
            ``norm_cfg``, ``interpolate_mode``, ``layer_scale_init_value``,
            ``pre_norm``, ``init_cfg`` and ``frozen_stages`` (at most
            ``num_layers - 2``) of ``VisionTransformer``.

    Raises:
        Error: If ``arch``, ``last_block`` or an option is unknown, the
            model has too few layers, a size or ``frozen_stages`` is out of
            range, or the method does not support the patch grid.
    """

    num_prefix = 1  # CLS
    why_not_reducible = 'its last block processes selected tokens'
    layer_lists = ('layers', 'last_layers')
    min_layers = 2

    def __init__(
        self,
        arch: str | dict = 'base',
        img_size: int | tuple[int, int] = 224,
        patch_size: int | tuple[int, int] = 16,
        *,
        stride: int | tuple[int, int] | None = None,
        last_block: Literal['new', 'pretrained'] = 'new',
        **vit,
    ):
        check_choice(('new', 'pretrained'), last_block=last_block)
        for name in vit:
            check_choice(OPTIONS, option=name)
        for side in () if stride is None else to_2tuple(stride):
            check_integer(stride=side)
        settings = settings_of(arch, self.arch_zoo)
        depth = settings['num_layers']
        check_integer(self.min_layers, num_layers=depth)
        check_integer(
            -1, depth - 2, frozen_stages=vit.get('frozen_stages', -1)
        )
        patch_cfg = dict(stride=stride or patch_size, padding=0)
        super().__init__(
            settings, img_size, patch_size, patch_cfg=patch_cfg, **vit
        )
        set_drop_path(self)
        for layer in self.layers:
            layer.attn.proj_drop.p = 0.0  # as in the public codes
        self.last_layers = ModuleList([self.layers.pop(-1)])
        self.last_block = last_block
        # parameter prefix of the last block in a plain vision transformer
        self.plain_name = f'layers.{len(self.layers)}.'
        self.final_norm = False  # the output is normalized, not all tokens
        self.check_grid(*self.patch_resolution)
        self.set_reduction()
        self.set_embedding()

    def check_grid(self, height: int, width: int) -> None:
        """Raise if the grid has fewer patches than the method selects.

        A subclass sets ``num_parts``, the number of selected patches, or
        overrides the check.
        """
        if height * width < self.num_parts:
            raise Error(
                f'{type(self).__name__} selects {self.num_parts} parts of '
                f'only {height} x {width} patches; use larger images'
            )

    @property
    def all_layers(self) -> list[nn.Module]:
        """See :class:`ForeignWeights`; the last block follows ``layers``."""
        return [*self.layers, *self.last_layers]

    def embed(self, x: Tensor) -> tuple[ObservedTokens, tuple[int, int]]:
        """See :class:`Reducible`; checks the patch grid."""
        tokens, hw = super().embed(x)
        self.check_grid(*hw)
        observed = ObservedTokens(
            tokens.features,
            num_prefix=tokens.num_prefix,
            num_patches=tokens.num_patches,
        )
        return observed, hw

    def attention_block(
        self,
        layer: nn.Module,
        tokens: ObservedTokens,
        key_bias: Tensor | None,
        softmax: Callable | None,
    ) -> tuple[Tensor, Attended]:
        """See :class:`Reducible`; stores queries, keys and values."""
        x, attended = super().attention_block(layer, tokens, key_bias, softmax)
        tokens.attended.append(attended)
        return x, attended

    def format_tokens(self, tokens: Tokens, hw: tuple[int, int]) -> Tensor:
        """See :class:`Reducible`; normalized CLS."""
        return self.ln1(tokens.features[:, 0])

    def check_cla(self) -> None:
        """See :class:`Reducible`; always refused."""
        raise Error(
            f'CLAHead needs CLS tokens without a norm, but those of '
            f'{type(self).__name__} are normalized; use LinearClsHead'
        )

    def adapt_state_dict(
        self, weights: dict[str, Tensor], prefix: str, report: LoadReport
    ) -> None:
        """See :class:`Reducible`; handles the last block of plain ViTs.

        If the checkpoint lacks ``last_layers``, its last plain block is loaded
        into them ('pretrained'), or ignored ('new').

        Raises:
            CheckpointError: If the checkpoint has neither of these blocks.
        """
        block, last = 'last_layers.0.', self.plain_name
        has_block, last_keys, has_layers = (
            [key for key in weights if key.startswith(prefix + start)]
            for start in (block, last, 'layers.')
        )
        if has_layers and not (has_block or last_keys):
            raise CheckpointError(
                f'the weights lack the last block ({block} or {last}); set '
                'num_layers to the depth of their model'
            )
        is_new = self.last_block == 'new' and not has_block
        new_parts = {*self.may_be_new} - {block}
        self.may_be_new = (*new_parts, *[block] * is_new)
        self.may_be_left = (last,) * is_new
        if self.last_block == 'pretrained' and not has_block:
            for key in last_keys:
                new = prefix + block + key.removeprefix(prefix + last)
                weights[new] = weights.pop(key)
        super().adapt_state_dict(weights, prefix, report)
