# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""The vision transformer: what enters its layers, and what leaves them."""

from collections.abc import Sequence
from typing import Literal

import torch
from mmcv.cnn.bricks.transformer import PatchEmbed
from mmengine.model import ModuleList
from mmpretrain.models.backbones import VisionTransformer
from mmpretrain.models.utils import resize_pos_embed
from torch import Tensor, nn

from mmclca.registry import MODELS
from mmclca.utils.messages import integer, one_of

from ..layers.deit_init import trunc_normal
from ..layers.parallel import ParallelLayer
from ..reduction.tokens import Tokens, featmap
from ..stems import build_stem
from .base import first_layers, set_drop_path, settings_of
from .reducible import Reducible
from .relative_positions import RelativePositions


class ViTEmbedding:
    """Mixin of :class:`TokenReductionViT`: from images to its tokens.

    They are [prefix | patches | registers | CLR], where the prefix is CLS
    and, if there is one, the distillation token. Patches have positions, the
    prefix only if ``with_cls_pos``.
    """

    def set_embedding(
        self, dist_token: bool, with_cls_pos: bool, num_registers: int
    ) -> None:
        """Build what mmpretrain's embedding lacks.

        See :class:`TokenReductionViT`.
        """
        self.dist_token = None
        if dist_token:
            drawn = trunc_normal(1, 1, self.embed_dims)
            self.dist_token = self._embedding(drawn)
        self.with_cls_pos = with_cls_pos
        if self.with_cls_token and not with_cls_pos:
            pos_embed = self.pos_embed.detach()[:, self.num_prefix :]
            self.pos_embed = self._embedding(pos_embed)
        integer(least=0, num_registers=num_registers)
        self.register_tokens = None
        if num_registers:  # equal ones would get equal gradients
            drawn = torch.randn(1, num_registers, self.embed_dims)
            self.register_tokens = self._embedding(1e-6 * drawn)

    @property
    def is_distilled(self) -> bool:
        """Whether a distillation token follows CLS."""
        return self.dist_token is not None

    @property
    def stride(self) -> tuple[int, int]:
        """Height and width of a patch in pixels."""
        if isinstance(self.patch_embed, PatchEmbed):
            return tuple(self.patch_embed.projection.stride)
        return tuple(self.patch_embed.stride)

    def _embedding(self, values: Tensor) -> nn.Parameter:
        """Return a parameter that is frozen with the embedding, with any
        stage."""
        return nn.Parameter(values, requires_grad=self.frozen_stages <= 0)

    def embed(self, x: Tensor) -> tuple[Tokens, tuple[int, int]]:
        """See :class:`Reducible`."""
        x, hw = self.patch_embed(x)
        tokens = Tokens(
            self._with_positions(x, hw),
            num_prefix=self.num_prefix,
            num_patches=hw[0] * hw[1],
        )
        if self.register_tokens is not None:
            registers = self.register_tokens.expand(x.size(0), -1, -1)
            tokens = tokens.append(registers, cached=False)
        if self.cache is not None:
            tokens = self.cache.start(tokens)
        x = self.pre_norm(self.drop_after_pos(tokens.x))
        return tokens.with_x(x), hw

    def _with_positions(self, x: Tensor, hw: tuple[int, int]) -> Tensor:
        """Patches (B, P, C) to the prefix and the patches, with positions."""
        pos_embed = resize_pos_embed(
            self.pos_embed,
            self.patch_resolution,
            hw,
            mode=self.interpolate_mode,
            num_extra_tokens=self.num_prefix * self.with_cls_pos,
        )
        own = (self.cls_token, self.dist_token)
        prefix = [t.expand(x.size(0), -1, -1) for t in own if t is not None]
        if not prefix:
            return x + pos_embed
        if self.with_cls_pos:
            return torch.cat((*prefix, x), dim=1) + pos_embed
        return torch.cat((*prefix, x + pos_embed), dim=1)


def _average(vit: VisionTransformer, tokens: Tokens, hw) -> Tensor:
    return tokens.average(vit.num_prefix)[:, 0]


def _deviation(vit: VisionTransformer, tokens: Tokens, hw) -> Tensor:
    return tokens.deviation(vit.num_prefix)[:, 0]


def _featmap(vit: VisionTransformer, tokens: Tokens, hw) -> Tensor:
    if tokens.trace:
        return featmap(tokens, hw)
    return vit._format_output(tokens.x, hw)


def _cls(vit, tokens, hw):
    return tokens.x[:, 0].clone()


def _joined(*forms):
    return lambda *given: torch.cat([form(*given) for form in forms], dim=-1)


# by ``out_type``: of a backbone, its tokens (B, N, C) and the grid (h, w);
# views of few tokens would keep the whole sequence in memory
OUTPUT_FORMS = dict(
    raw=lambda vit, tokens, hw: tokens.x,
    cls_token=_cls,
    prefix=lambda vit, tokens, hw: tokens.x[:, : vit.num_prefix].clone(),
    average=_average,
    std=_deviation,
    cls_average=_joined(_cls, _average),
    cls_std=_joined(_cls, _deviation),
    cls_average_std=_joined(_cls, _average, _deviation),
    avg_featmap=lambda vit, tokens, hw: vit.ln2(_average(vit, tokens, hw)),
    featmap=_featmap,
)


@MODELS.register_module()
class TokenReductionViT(
    RelativePositions, ViTEmbedding, Reducible, VisionTransformer
):
    """Vision transformer whose tokens are reduced on the way.

    mmpretrain's ``VisionTransformer`` with the same parameter names, and equal
    to it without a reducer and a cache. A reducer makes the sequence shorter
    in the layers ``reduce_at``; a cache (CLC) puts back what was lost. For
    the CLA head give ``out_indices=(*reduce_at, -1), final_norm=False``.

    Weights of timm, of other releases and of the CLCA authors are renamed
    on load; positions are resized as timm does it (bicubic, antialias).

    Args:
        arch (str | dict): As in ``VisionTransformer``. Defaults to 'base'.
        img_size (int | tuple): As there. Defaults to 224.
        patch_size (int | tuple): As there. Defaults to 16.
        in_channels (int): As there. Defaults to 3.
        out_indices (Sequence[int] | int): Layers whose output is returned.
            Defaults to -1, the last.
        reducer (dict, optional): Config of a :class:`TokenReducer`.
            Defaults to None.
        reduce_at (Sequence[int] | int): Layers, from 0, that reduce: stage
            s is ``reduce_at[s]``. Without a reducer the cache recovers
            there. Defaults to ().
        cache (dict, optional): Config of a :class:`CrossLayerCache`.
            Defaults to None.
        num_registers (int): Registers of `Vision Transformers Need
            Registers`, learned tokens without a position. They follow the
            patches and are to a reducer and the average of the cache what
            patches are. Defaults to 0.
        dist_token (bool): Whether the distillation token of `Training
            data-efficient image transformers & distillation through
            attention` follows CLS, for a :class:`DistilledHead`. No reducer
            drops it, and none scores by it. Defaults to False.
        with_cls_pos (bool): Whether CLS, and the distillation token, have a
            position. False for DeiT III, whose ``pos_embed`` has a row a
            patch and no more. Defaults to True.
        stem (dict, optional): Config of what makes tokens of an image, in
            place of mmpretrain's ``PatchEmbed``: a module from (B, 3, H, W)
            to tokens (B, N, C) and their grid (h, w), with
            ``init_out_size``, the grid of ``img_size``, and ``stride``,
            which must be ``patch_size``. Defaults to None.
        branches (int): Attentions side by side in a layer, and FFNs after
            them: see :class:`ParallelLayer`. A reducer sees the heads of all
            of them. Defaults to 1, a plain layer.
        drop_path_mode (str): 'linear', the rate of stochastic depth rises
            from 0 to ``drop_path_rate`` in the last layer, or 'uniform', it
            is that in every layer. Defaults to 'linear'.
        depth (int, optional): Layers of ``arch`` to build, from the first:
            weights of the others are left out on load. Defaults to None,
            all.
        rel_pos_bias (bool): Whether attention is biased by how patches lie
            to each other, see :class:`RelativePositions`. Defaults to
            False.
        with_cp (bool): Whether to recompute activations in the backward pass
            to save memory. Defaults to False.
        **vit: The other arguments of ``VisionTransformer``. With
            ``out_type='prefix'``, the default beside ``dist_token``, CLS and
            the distillation token come out, (B, 2, C); with ``'featmap'``
            the tokens left are put back in the places of the patches that
            they stand for, zero where none does; with ``'avg_featmap'`` the
            average covers all tokens after these two, and is normalized;
            ``'average'`` is the same without a norm, (B, C), ``'std'`` the
            standard deviation of these tokens by channel, and
            ``'cls_average'``, ``'cls_std'`` and ``'cls_average_std'`` have
            CLS before them, (B, 2C) or (B, 3C).
            ``frozen_stages`` freezes registers and CLR tokens with the
            embedding and keeps frozen layers in eval mode, the reducer is
            always trained.

    Raises:
        ValueError: If ``reduce_at`` is not sorted or outside the layers,
            empty beside a reducer or a cache, if there is no CLS token where
            one is needed (``dist_token`` follows it), if ``num_registers`` is
            no number of tokens, if ``arch`` is not known or lacks a size, if
            ``depth`` is no number of layers or ``branches`` none of
            branches, if there is no such ``drop_path_mode``, if patches of
            the stem are not of ``patch_size``, or if ``rel_pos_bias`` does
            not go with the reducer or ``branches``.
    """

    may_be_new = (*Reducible.may_be_new, 'ln1.', 'ln2.')
    embedding = (
        *Reducible.embedding,
        *('cache.', 'dist_token', 'pre_norm.', 'register_tokens'),
    )
    shaped_by = 'arch, img_size, patch_size and dist_token'
    OUT_TYPES = set(OUTPUT_FORMS)

    def __init__(
        self,
        arch: str | dict = 'base',
        img_size: int | tuple = 224,
        patch_size: int | tuple = 16,
        in_channels: int = 3,
        out_indices: Sequence[int] | int = -1,
        *,
        reducer: dict | None = None,
        reduce_at: Sequence[int] | int = (),
        cache: dict | None = None,
        num_registers: int = 0,
        dist_token: bool = False,
        with_cls_pos: bool = True,
        stem: dict | None = None,
        branches: int = 1,
        drop_path_mode: Literal['linear', 'uniform'] = 'linear',
        depth: int | None = None,
        rel_pos_bias: bool = False,
        with_cp: bool = False,
        **vit,
    ):
        if dist_token:
            self.num_extra_tokens = 2
            vit = dict(out_type='prefix') | vit
        if isinstance(out_indices, Sequence):
            out_indices = list(out_indices)  # the parent writes into it
        one_of(('linear', 'uniform'), drop_path_mode=drop_path_mode)
        integer(branches=branches)
        arch, left_out = first_layers(settings_of(arch, self.arch_zoo), depth)
        super().__init__(
            arch, img_size, patch_size, in_channels, out_indices, **vit
        )
        uniform = drop_path_mode == 'uniform'
        set_drop_path(self, vit.get('drop_path_rate', 0) if uniform else None)
        if branches > 1:
            self.layers = ModuleList(
                ParallelLayer(layer, branches) for layer in self.layers
            )
        self.may_be_left = left_out
        self.with_cp = with_cp
        self.num_prefix = self.num_extra_tokens
        self._check_prefix(dist_token)
        self.set_reduction(reducer, reduce_at, cache)
        if self.cache is not None:
            self.cache.requires_grad_(self.frozen_stages <= 0)
        if stem is not None:
            self.patch_embed = build_stem(self, stem, patch_size, in_channels)
        if rel_pos_bias:
            self.set_relative_positions(branches)
        self.set_embedding(dist_token, with_cls_pos, num_registers)
        if self.frozen_stages > 0:  # before an optimizer asks
            self._freeze_stages()

    def _check_prefix(self, dist_token: bool) -> None:
        """Refuse a distillation token or output type that needs CLS."""
        if self.num_prefix:
            return
        if dist_token:
            raise ValueError(
                'dist_token=True needs a CLS token, but with_cls_token=False; '
                'remove with_cls_token'
            )
        if self.out_type.startswith(('cls_average', 'cls_std', 'prefix')):
            raise ValueError(
                f'out_type={self.out_type!r} needs a CLS token, but '
                "with_cls_token=False; set out_type to 'average' or 'std'"
            )

    def fuse(self) -> 'TokenReductionViT':
        """See :class:`Reducible`: layers with branches become plain ones."""
        self.layers = ModuleList(
            layer.fuse() if isinstance(layer, ParallelLayer) else layer
            for layer in self.layers
        )
        return self

    def apply_final_norm(self, x: Tensor) -> Tensor:
        """See :class:`Reducible`."""
        return self.ln1(x) if self.final_norm else x

    def format_tokens(self, tokens: Tokens, hw: tuple[int, int]) -> Tensor:
        """Return the tokens in the form of ``out_type``."""
        return OUTPUT_FORMS[self.out_type](self, tokens, hw)

    def check_cla(self) -> None:
        """See :class:`Reducible`."""
        if self.out_type not in ('cls_token', 'prefix'):
            raise ValueError(
                f'CLAHead needs CLS tokens, not out_type={self.out_type!r}; '
                "use 'cls_token' or 'prefix' in the backbone"
            )
        if self.final_norm:
            raise ValueError(
                'CLAHead needs CLS tokens without the final LayerNorm; set '
                'final_norm=False in the backbone (it is True)'
            )
