# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""What timm's vision transformers with token reduction have in common."""

from typing import Any

from timm.layers import AttentionPoolLatent
from timm.models._features import feature_take_indices
from torch import Tensor, nn
from torch.fx import Proxy

from mmclca.errors import Error

from ..reduction.reducers.base import RotarySettings
from ..reduction.tokens import Tokens, featmap
from .base import LayerFunctions, ReducedModel
from .timm_eva_layers import EVA_FUNCTIONS
from .timm_layers import VIT_FUNCTIONS
from .timm_versions import pools_prefix, select_arguments

LAYER_FUNCTIONS = VIT_FUNCTIONS | EVA_FUNCTIONS
POOLS = {AttentionPoolLatent}  # supported attention pooling


def _format_intermediates(
    maps: list[Tensor],
    prefixes: list[Tensor],
    final: Tensor | None,
    as_dict: bool,
) -> list | tuple | dict:
    """Arrange intermediate features as timm does."""
    if as_dict:
        parts = dict(
            image_intermediates=maps,
            image_intermediates_prefix=prefixes or None,
            image_features=final,
        )
        return {name: x for name, x in parts.items() if x is not None}
    features = [*zip(maps, prefixes, strict=True)] if prefixes else maps
    return features if final is None else (final, features)


class ReducedTimm(ReducedModel):
    """Mixin over a vision transformer of timm, with token reduction.

    Class token, distillation token and registers are the prefix, which no
    reducer drops. A subclass defines ``timm_class``, the class of timm with
    the forward pass, ``has_cls`` and :meth:`add_positions`.
    """

    timm_class: Any
    # modules of timm's class
    attn_pool: Any
    blocks: Any
    layers = property(lambda self: self.blocks)
    embed_dims = property(lambda self: self.embed_dim)
    num_prefix = property(lambda self: self.num_prefix_tokens)
    img_size = property(lambda self: self.patch_embed.img_size)
    patch_resolution = property(lambda self: self.patch_embed.grid_size)
    ranks_by_cls = property(lambda self: self.has_cls)
    pool_from = property(lambda x: 0 if pools_prefix(x) else x.num_prefix)
    has_pos = property(
        lambda x: x.pos_embed is not None and not x.no_embed_class
    )

    @staticmethod
    def get_functions(layer: Any) -> LayerFunctions:
        """Return the functions that run a layer, or one derived from it."""
        return next(
            LAYER_FUNCTIONS[base]
            for base in layer.original.__mro__
            if base in LAYER_FUNCTIONS
        )

    def delegates(self) -> list[nn.Module]:
        """See :class:`ReducedModel`."""
        attentions = [x for x in self.blocks.modules() if hasattr(x, 'qkv')]
        return [*self.blocks, *attentions]

    def add_positions(
        self, x: Tensor, hw: tuple[int, int], settings: RotarySettings
    ) -> Tokens:
        """Add the prefix and positions to patches.

        Args:
            x (Tensor): Output of ``patch_embed``, (B, N, C) or (B, h, w, C).
            hw (tuple[int, int]): Height and width of the patch grid.
            settings (RotarySettings): Settings of the reducer.
        """
        raise NotImplementedError

    def embed(self, x: Tensor) -> tuple[Tokens, tuple[int, int]]:
        """See :class:`Reducible`."""
        return self.embed_with(x, self.reducer.rotary, self.cache)

    def embed_with(
        self, x: Tensor, settings: RotarySettings, cache: Any
    ) -> tuple[Tokens, tuple[int, int]]:
        """Embed images (B, 3, H, W) for a reducer and a cache.

        Args:
            x (Tensor): The images.
            settings (RotarySettings): Settings of the reducer.
            cache (CrossLayerCache, optional): The cache.
        """
        x = self.patch_embed(x)
        hw = x.shape[1:3] if x.dim() == 4 else self.patch_resolution
        tokens = self.add_positions(x, tuple(hw), settings)
        if cache is not None:
            tokens = cache.start(tokens)
        return tokens.with_features(self.norm_pre(tokens.features)), tuple(hw)

    @property
    def is_plain(self) -> bool:
        """Whether the loop of timm gives the same result, and is faster."""
        return not (self.reduces or self.has_cla or self.recorder)

    def _features(self, x: Tensor) -> tuple:
        if not self.is_plain:
            return super()._features(x)
        return self.timm_class.forward_features(self, x), None

    def forward_features(
        self,
        x: Tensor,
        attn_mask: Tensor | None = None,
        is_causal: bool = False,
    ) -> Tensor | tuple[Tensor, ...]:
        """See :class:`ReducedModel`; masks need ``method=None``."""
        if attn_mask is None and not is_causal:
            return super().forward_features(x)
        self._check_mask()
        plain = self.timm_class.forward_features
        masks = select_arguments(
            plain, attn_mask=attn_mask, is_causal=is_causal
        )
        return plain(self, x, **masks)

    def forward(
        self,
        x: Tensor,
        attn_mask: Tensor | None = None,
        is_causal: bool = False,
    ) -> Tensor:
        """See :class:`ReducedModel`; masks need ``method=None``."""
        if isinstance(x, Proxy) or (attn_mask is None and not is_causal):
            return super().forward(x)
        y = self.forward_features(x, attn_mask, is_causal)
        return self.forward_head(y)

    def _check_mask(self) -> None:
        if not self.is_plain:
            raise Error(
                'attn_mask and is_causal refer to all tokens, which the '
                'reduced layers no longer have; use '
                'reduce_tokens(model, None) or the original model'
            )

    def forward_intermediates(
        self,
        x: Tensor,
        indices: int | list[int] | None = None,
        return_prefix_tokens: bool = False,
        norm: bool = False,
        stop_early: bool = False,
        output_fmt: str = 'NCHW',
        intermediates_only: bool = False,
        output_dict: bool = False,
        attn_mask: Tensor | None = None,
        is_causal: bool = False,
    ) -> list | tuple | dict:
        """Return features of layers, as timm's method, after the reduction.

        Each patch has the weighted average of the tokens that contain it, and
        zeros if it was dropped, so the shapes are those of timm. The final
        features are those of :meth:`forward_features`. All layers run, even
        with ``stop_early``.
        """
        if self.is_plain:
            plain = super().forward_intermediates
            arguments = select_arguments(
                plain,
                indices=indices,
                return_prefix_tokens=return_prefix_tokens,
                norm=norm,
                stop_early=stop_early,
                output_fmt=output_fmt,
                intermediates_only=intermediates_only,
                output_dict=output_dict,
                attn_mask=attn_mask,
                is_causal=is_causal,
            )
            return plain(x, **arguments)
        if attn_mask is not None or is_causal:
            self._check_mask()
        take, _ = feature_take_indices(len(self.blocks), indices)
        start, hw = self.embed(x)
        maps, prefixes = [], []

        def collect(i: int, tokens: Tokens) -> None:
            if i in take:
                y = self.norm(tokens.features) if norm else tokens.features
                tokens = tokens.with_features(y)
                maps.append(featmap(tokens, hw))
                prefixes.append(y[:, : self.num_prefix])

        tokens = self.run_layers(start, collect)
        if output_fmt == 'NLC':
            maps = [y.flatten(2).transpose(1, 2) for y in maps]
        return _format_intermediates(
            maps,
            prefixes * bool(return_prefix_tokens and self.num_prefix),
            None if intermediates_only else self.norm(tokens.features),
            output_dict,
        )

    def prune_intermediate_layers(self, *args, **kwargs) -> list[int]:
        """See timm."""
        if self.has_cla:
            raise Error(
                'layers of a model with clca=True cannot be removed, since '
                'the CLA head uses them'
            )
        take = super().prune_intermediate_layers(*args, **kwargs)
        self.out_indices = [len(self.blocks) - 1]
        return take

    def apply_final_norm(self, x: Tensor) -> Tensor:
        """See :class:`Reducible`."""
        return self.norm(x)

    def remove_head(self) -> None:
        """Remove the modules after the layers; a CLA head replaces them."""
        for name in ('norm', 'fc_norm', 'head_dist'):
            setattr(self, name, nn.Identity())
        self.attn_pool = None

    def pool(self, x: Tensor | Tokens, pool_type: str | None = None) -> Tensor:
        """Pool tokens (B, N, C); sizes and padding bias attention pooling."""
        if isinstance(x, Tensor):
            return super().pool(x, pool_type)
        bias = self.pool_bias(x)[..., self.pool_from :]
        mask = select_arguments(self.attn_pool.forward, attn_mask=bias)
        return self.attn_pool(x.features[:, self.pool_from :], **mask)
