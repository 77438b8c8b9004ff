# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""How a vision transformer makes tokens of images."""

import torch
from mmcv.cnn.bricks.transformer import PatchEmbed
from mmpretrain.models.utils import resize_pos_embed, to_2tuple
from torch import Tensor, nn
from torch.nn.init import trunc_normal_

from ..reduction.tokens import Tokens
from ..stems import build_stem


class ViTEmbedding:
    """Mixin of :class:`TokenReductionViT`: from images to its tokens.

    They are [prefix | patches | registers | CLR], where the prefix is CLS
    and, if there is one, the distillation token. Patches have positions, the
    prefix only if ``with_cls_pos``.
    """

    def set_embedding(
        self,
        patch_size: int | tuple,
        in_channels: int,
        stem: dict | None,
        *,
        dist_token: bool,
        with_cls_pos: bool,
        num_registers: int,
    ) -> None:
        """Build what mmpretrain's embedding lacks.

        See :class:`TokenReductionViT`.
        """
        if stem is not None:
            self.patch_embed = build_stem(
                stem,
                img_size=self.img_size,
                patch_size=to_2tuple(patch_size),
                patch_resolution=tuple(self.patch_resolution),
                in_channels=in_channels,
                embed_dims=self.embed_dims,
            )
        self.dist_token = None
        if dist_token:
            drawn = torch.zeros(1, 1, self.embed_dims)
            self.dist_token = self._embedding(trunc_normal_(drawn, std=0.02))
        self.with_cls_pos = with_cls_pos
        if self.with_cls_token and not with_cls_pos:
            pos_embed = self.pos_embed.detach()[:, self.num_prefix :]
            self.pos_embed = self._embedding(pos_embed)
        self.register_tokens = self._build_registers(num_registers)

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
        """A parameter that is frozen with the embedding, with any stage."""
        return nn.Parameter(values, requires_grad=self.frozen_stages <= 0)

    def _build_registers(self, num_registers: int) -> nn.Parameter | None:
        if type(num_registers) is not int or num_registers < 0:
            raise ValueError(
                f'num_registers={num_registers!r} is not allowed: give 0, or '
                'as many as the weights have, for example 4'
            )
        if not num_registers:
            return None
        # equal ones would get equal gradients
        return self._embedding(
            1e-6 * torch.randn(1, num_registers, self.embed_dims)
        )

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
