# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""The vision transformer with token reduction: embedding and outputs."""

from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any, Literal

import torch
from mmcv.cnn.bricks.transformer import PatchEmbed
from mmengine.model import ModuleList
from mmpretrain.models.backbones import VisionTransformer
from mmpretrain.models.utils import resize_pos_embed
from torch import Tensor, nn

from mmclca.errors import Error
from mmclca.registry import MODELS
from mmclca.utils.messages import check_choice, check_integer

from ..layers.deit_init import trunc_normal
from ..layers.parallel import ParallelLayer
from ..reduction.tokens import Tokens, featmap
from ..stems import build_stem
from .base import first_layers, set_drop_path, settings_of
from .reducible import Reducible
from .relative_positions import RelativePositions


class ViTEmbedding(nn.Module):
    """Mixin of :class:`TokenReductionViT`: from images to tokens.

    The tokens are [prefix | patches | registers | CLR]. The prefix is CLS and
    optionally the distillation token. Patches have positions; the prefix has
    them only with ``with_cls_pos``.
    """

    cache: nn.Module | None
    cls_token: nn.Parameter | None
    embed_dims: int
    frozen_stages: int
    interpolate_mode: str
    num_prefix: int
    patch_embed: Any
    patch_resolution: tuple[int, int]
    with_cls_token: bool

    def set_embedding(
        self,
        dist_token: bool = False,
        with_cls_pos: bool = True,
        num_registers: int = 0,
    ) -> None:
        """Build the parts missing in mmpretrain's embedding.

        See :class:`TokenReductionViT`.
        """
        self.dist_token = None
        if dist_token:
            token = trunc_normal(1, 1, self.embed_dims)
            self.dist_token = self._embedding(token)
        self.with_cls_pos = with_cls_pos
        if self.with_cls_token and not with_cls_pos:
            pos_embed = self.pos_embed.detach()[:, self.num_prefix :]
            self.pos_embed = self._embedding(pos_embed)
        check_integer(minimum=0, num_registers=num_registers)
        self.register_tokens = None
        if num_registers:  # equal registers would get equal gradients
            noise = torch.randn(1, num_registers, self.embed_dims)
            self.register_tokens = self._embedding(1e-6 * noise)

    @property
    def is_distilled(self) -> bool:
        """Whether a distillation token follows CLS."""
        return self.dist_token is not None

    @property
    def stride(self) -> tuple[int, int]:
        """Patch height and width in pixels."""
        if isinstance(self.patch_embed, PatchEmbed):
            height, width = self.patch_embed.projection.stride
        else:
            height, width = self.patch_embed.stride
        return height, width

    def _embedding(self, values: Tensor) -> nn.Parameter:
        """Return a parameter, frozen together with the embedding."""
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
        x = self.pre_norm(self.drop_after_pos(tokens.features))
        return tokens.with_features(x), hw

    def _with_positions(self, x: Tensor, hw: tuple[int, int]) -> Tensor:
        """Map patches (B, P, C) to prefix and patches with positions."""
        pos_embed = resize_pos_embed(
            self.pos_embed,
            self.patch_resolution,
            hw,
            mode=self.interpolate_mode,
            num_extra_tokens=self.num_prefix * self.with_cls_pos,
        )
        learned = (self.cls_token, self.dist_token)
        prefix = [
            t.expand(x.size(0), -1, -1) for t in learned if t is not None
        ]
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
    return vit._format_output(tokens.features, hw)


def _cls(vit: VisionTransformer, tokens: Tokens, hw) -> Tensor:
    return tokens.features[:, 0].clone()


def _join_forms(*forms: Callable) -> Callable:
    """Return a function that concatenates the results of functions."""

    def join(vit: VisionTransformer, tokens: Tokens, hw) -> Tensor:
        return torch.cat([form(vit, tokens, hw) for form in forms], dim=-1)

    return join


# functions of the backbone, its tokens (B, N, C) and the grid (h, w);
# clones, because views would keep all tokens in memory
OUTPUT_FORMS = dict(
    raw=lambda vit, tokens, hw: tokens.features,
    cls_token=_cls,
    prefix=lambda vit, tokens, hw: tokens.features[
        :, : vit.num_prefix
    ].clone(),
    average=_average,
    std=_deviation,
    cls_average=_join_forms(_cls, _average),
    cls_std=_join_forms(_cls, _deviation),
    cls_average_std=_join_forms(_cls, _average, _deviation),
    avg_featmap=lambda vit, tokens, hw: vit.ln2(_average(vit, tokens, hw)),
    featmap=_featmap,
)


@MODELS.register_module()
class TokenReductionViT(
    RelativePositions, ViTEmbedding, Reducible, VisionTransformer
):
    """Vision transformer with token reduction.

    mmpretrain's ``VisionTransformer`` with the same parameter names and,
    without a reducer and a cache, the same outputs. A reducer shortens the
    sequence in the layers ``reduce_at``; a cache (CLC) restores lost
    information. For the CLA head set ``out_indices=(*reduce_at, -1),
    final_norm=False``.

    Weights from timm, other releases and the CLCA authors are renamed on load;
    positions are resized as in timm (bicubic, antialias).

    Args:
        arch (str | dict): As in ``VisionTransformer``. Defaults to 'base'.
        img_size (int | tuple): As in ``VisionTransformer``. Defaults to 224.
        patch_size (int | tuple): As in ``VisionTransformer``. Defaults to 16.
        in_channels (int): As in ``VisionTransformer``. Defaults to 3.
        out_indices (Sequence[int] | int): Layers with an output. Defaults to
            -1, the last.
        reducer (dict, optional): Config of a :class:`TokenReducer`.
            Defaults to None.
        reduce_at (Sequence[int] | int): Layers, from 0, with a reduction:
            stage s is ``reduce_at[s]``. Without a reducer, the cache still
            recovers there. Defaults to ().
        cache (dict, optional): Config of a :class:`CrossLayerCache`.
            Defaults to None.
        num_registers (int): Learned tokens without a position, from `Vision
            Transformers Need Registers`. They follow the patches; reducers and
            the cache's average treat them as patches. Defaults to 0.
        dist_token (bool): Whether the distillation token from `Training
            data-efficient image transformers & distillation through
            attention` follows CLS, for a :class:`DistilledHead`. Reducers
            never drop it and do not score by it. Defaults to False.
        with_cls_pos (bool): Whether CLS and the distillation token have a
            position. False for DeiT III, whose ``pos_embed`` has rows for
            patches only. Defaults to True.
        stem (dict, optional): Config of a patch embedding that replaces
            mmpretrain's ``PatchEmbed``: a module from images (B, 3, H, W)
            to tokens (B, N, C) and their grid (h, w), with
            ``init_out_size``, the grid for ``img_size``, and ``stride``,
            which must equal ``patch_size``. Defaults to None.
        branches (int): Parallel attentions per layer, followed by as many
            parallel FFNs: see :class:`ParallelLayer`. A reducer sees the heads
            of all branches. Defaults to 1, a plain layer.
        drop_path_mode (str): 'linear': the stochastic depth rate rises from 0
            to ``drop_path_rate`` in the last layer; 'uniform': it is equal in
            every layer. Defaults to 'linear'.
        depth (int, optional): Number of first layers of ``arch`` to build;
            weights of the other layers are ignored on load. Defaults to None,
            all.
        rel_pos_bias (bool): Whether to add a relative position bias to the
            attention, see :class:`RelativePositions`. Defaults to False.
        with_cp (bool): Whether to recompute activations in the backward pass
            to save memory. Defaults to False.
        **vit: Other arguments of ``VisionTransformer``.

            ``out_type`` has more values. 'prefix', the default with
            ``dist_token``, returns CLS and the distillation token, (B, 2, C).
            'average' is the mean over all tokens after the prefix, without a
            norm, (B, C); 'avg_featmap' normalizes it. 'std' is the standard
            deviation per channel; 'cls_average', 'cls_std' and
            'cls_average_std' concatenate it with CLS, (B, 2C) or (B, 3C).
            'featmap' writes remaining tokens to the positions of their
            patches, and zeros elsewhere.

            ``frozen_stages`` freezes registers and CLR tokens with the
            embedding and keeps frozen layers in eval mode. The reducer is
            always trained.

    Raises:
        Error: If ``reduce_at`` is not ascending, outside the layers, or
            missing for a reducer or cache; if a required CLS token is missing;
            if ``arch`` or ``drop_path_mode`` is unknown; if ``num_registers``,
            ``depth`` or ``branches`` is out of range; if the stem does not
            match ``patch_size``; if ``rel_pos_bias`` does not support the
            reducer or ``branches``.
    """

    default_out_indices = -1
    has_layer_features = True
    out_type: str
    may_be_new = (*Reducible.may_be_new, 'ln1.', 'ln2.')
    embedding = (
        *Reducible.embedding,
        'cache.',
        'dist_token',
        'pre_norm.',
        'register_tokens',
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
            out_indices = list(out_indices)  # the parent modifies it
        check_choice(('linear', 'uniform'), drop_path_mode=drop_path_mode)
        check_integer(branches=branches)
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
        if self.frozen_stages > 0:  # before an optimizer is built
            self._freeze_stages()

    @classmethod
    def from_vit(cls, vit: VisionTransformer) -> 'TokenReductionViT':
        """Wrap mmpretrain's ViT without reduction; share its parameters."""
        model = cls.__new__(cls)
        model.__dict__.update(vars(vit))
        model._parameters = dict(vit._parameters)
        model._modules = dict(vit._modules)
        model._load_state_dict_pre_hooks = OrderedDict()
        model.has_weights = True  # of the ViT
        model.num_prefix = vit.num_extra_tokens
        model.set_reduction()
        model.set_embedding()
        return model

    def _check_prefix(self, dist_token: bool) -> None:
        """Refuse a distillation token or output type without CLS."""
        if self.num_prefix:
            return
        if dist_token:
            raise Error(
                'dist_token=True needs a CLS token, but with_cls_token=False; '
                'remove with_cls_token'
            )
        if self.out_type.startswith(('cls_average', 'cls_std', 'prefix')):
            raise Error(
                f'out_type={self.out_type!r} needs a CLS token, but '
                "with_cls_token=False; set out_type to 'average' or 'std'"
            )

    def fuse(self) -> 'TokenReductionViT':
        """See :class:`Reducible`; layers with branches become plain layers."""
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
            raise Error(
                f'CLAHead needs CLS tokens, not out_type={self.out_type!r}; '
                "use 'cls_token' or 'prefix' in the backbone"
            )
        if self.final_norm:
            raise Error(
                'CLAHead needs CLS tokens without the final LayerNorm; set '
                'final_norm=False in the backbone (it is True)'
            )
