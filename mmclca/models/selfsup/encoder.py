# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Encoders of masked autoencoders and of BEiT."""

import re

import torch
from mmcv.cnn.bricks.transformer import PatchEmbed
from mmengine.model import BaseModule
from mmpretrain.models.selfsup import BEiTPretrainViT, MAEViT
from mmpretrain.models.utils import build_2d_sincos_position_embedding
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from mmclca.checkpoints.report import LoadReport
from mmclca.errors import Error
from mmclca.registry import MODELS
from mmclca.utils.messages import check_integer

from ..backbones import ForeignWeights, Reducible, ViTEmbedding
from ..backbones.base import set_drop_path, settings_of
from ..stems import build_stem
from .masking import Encoded, count_visible

LAYER_NORM = dict(type='LN', eps=1e-6)
# parameters of the head in a classifier's checkpoint
HEAD_KEY = re.compile(r'([a-z]+\.)*(ifa_)?head(_dist)?\.(?!predictor)')


@MODELS.register_module()
class SegmentedMAEViT(ForeignWeights, MAEViT):
    """mmpretrain's ``MAEViT``, divided into segments of equal depth.

    It gives the same results as ``MAEViT`` in ``MAE``. In addition, masks can
    be fixed (:func:`fixed_masks`), intermediate tokens are returned
    (:meth:`encode`, :meth:`segments`), the stem can be any that commutes with
    masking, and released weights are renamed on load. Masking: `Masked
    Autoencoders Are Scalable Vision Learners
    <https://arxiv.org/abs/2111.06377>`_; segments: `Masked Image Residual
    Learning for Scaling Deeper Vision Transformers
    <https://arxiv.org/abs/2309.14136>`_, section 3.1.

    Args:
        arch (str | dict): As in ``VisionTransformer``. Defaults to 'base'.
        img_size (int): Image size in pixels. Defaults to 224.
        patch_size (int): Patch size in pixels. Defaults to 16.
        mask_ratio (float): Share of masked patches, between 0 and 1. Defaults
            to 0.75.
        norm_cfg (dict): Config of the norms. Defaults to LayerNorm with an eps
            of 1e-6.
        num_segments (int): 1, or an even divisor of the number of layers.
            Defaults to 1.
        stem (dict, optional): Config of a stem with a method ``visible``, such
            as :class:`HMLPStem`, which is applied to the visible patches only.
            Defaults to None, mmpretrain's ``PatchEmbed``.
        with_cp (bool): Whether to recompute activations in the backward pass
            to save memory. Defaults to False.
        **vit: Further arguments of ``MAEViT``.

    Raises:
        Error: If ``arch`` is unknown, ``mask_ratio`` masks all patches or
            none, ``num_segments`` is neither 1 nor an even divisor, or the
            patches of the stem overlap; on load, if the file is a
            classifier's.
    """

    fixed_shuffle = None  # set by fixed_masks
    # shared with the other vision transformers
    stride, normalize = ViTEmbedding.stride, Reducible.normalize

    def __init__(
        self,
        arch: str | dict = 'base',
        img_size: int = 224,
        patch_size: int = 16,
        mask_ratio: float = 0.75,
        norm_cfg: dict = LAYER_NORM,
        num_segments: int = 1,
        stem: dict | None = None,
        with_cp: bool = False,
        **vit,
    ):
        vit.update(norm_cfg=norm_cfg, mask_ratio=mask_ratio)
        arch = settings_of(arch, self.arch_zoo)
        super().__init__(arch, img_size, patch_size, **vit)
        set_drop_path(self)
        self.num_visible = count_visible(self.num_patches, mask_ratio)
        self.num_segments = _num_segments(self.num_layers, num_segments)
        self.patch_size, self.norm_cfg = patch_size, norm_cfg
        self.with_cp = with_cp
        if stem is not None:
            self.patch_embed = self._build_stem(stem)
        self.rename_on_load()

    # set by MAEViT
    cls_token: nn.Parameter
    num_layers: int
    num_patches: int
    pos_embed: nn.Parameter

    def _build_stem(self, stem: dict) -> nn.Module:
        built = build_stem(self, stem, self.patch_size)
        if not hasattr(built, 'visible'):
            raise Error(
                f'{type(built).__name__} mixes masked and visible patches; '
                "use dict(type='mmclca.HMLPStem')"
            )
        return built

    def init_weights(self) -> None:
        """Initialize as ``MAEViT`` does, but only once.

        Stems initialize themselves. The file of an ``init_cfg`` is loaded
        last.
        """
        if not self.is_init:  # keep weights loaded since
            self._init_parameters()
        BaseModule.init_weights(self)

    def _init_parameters(self) -> None:
        positions = build_2d_sincos_position_embedding(
            self.patch_resolution, self.embed_dims, cls_token=True
        )
        self.pos_embed.data.copy_(positions)
        if isinstance(self.patch_embed, PatchEmbed):
            weight = self.patch_embed.projection.weight.data
            nn.init.xavier_uniform_(weight.flatten(1))
        nn.init.normal_(self.cls_token, std=0.02)

    def forward(self, x: Tensor, mask: bool | None = True):
        """Encode visible patches, or return plain features without a mask.

        Returns:
            tuple: With a mask, as in ``MAEViT``: normalized tokens (B, 1 + V,
            C), ``mask`` and ``ids_restore`` of :class:`Encoded`.
        """
        if not mask:
            return super().forward(x, mask=None)
        seen = self.encode(x)
        return seen.output, seen.mask, seen.ids_restore

    def encode(self, x: Tensor, ids_shuffle: Tensor | None = None) -> Encoded:
        """Apply the layers to the visible patches of images.

        Args:
            x (Tensor): Images (B, 3, H, W).
            ids_shuffle (Tensor, optional): See :class:`Encoded`. Defaults to
                None: random, or as set by :func:`fixed_masks`.
        """
        if ids_shuffle is None:
            ids_shuffle = self.draw_shuffle(x)
        inputs = [self.embed_visible(x, ids_shuffle[:, : self.num_visible])]
        saves_memory = self.with_cp and torch.is_grad_enabled()
        for layer in self.layers:
            if saves_memory:
                x = checkpoint(layer, inputs[-1], use_reentrant=False)
            else:
                x = layer(inputs[-1])
            inputs.append(x)
        return Encoded(self, inputs, self.ln1(inputs[-1]), ids_shuffle)

    def draw_shuffle(self, x: Tensor) -> Tensor:
        """Return a random order of the patches per image, or the fixed one."""
        if self.fixed_shuffle is not None:
            return self.fixed_shuffle.to(x.device)
        noise = torch.rand(x.size(0), self.num_patches, device=x.device)
        return noise.argsort(dim=1)

    def embed_visible(self, x: Tensor, ids_keep: Tensor) -> Tensor:
        """Embed images as CLS and the patches ``ids_keep``, (B, 1 + V, C)."""
        if isinstance(self.patch_embed, PatchEmbed):
            index = ids_keep.unsqueeze(-1).expand(-1, -1, self.embed_dims)
            patches = self.patch_embed(x)[0].gather(1, index)
        else:
            patches = self.patch_embed.visible(x, ids_keep)
        patches = patches + self.pos_embed[0, 1:][ids_keep]
        cls_token = self.cls_token + self.pos_embed[:, :1]
        return torch.cat((cls_token.expand(len(x), -1, -1), patches), dim=1)

    def segments(self, seen: Encoded) -> list[Tensor]:
        """Return the input of the first segment and each segment's output.

        These are z_0 to z_G of the paper, (B, 1 + V, C).
        """
        return seen.inputs[:: self.num_layers // self.num_segments]

    def adapt_state_dict(
        self, weights: dict[str, Tensor], prefix: str, report: LoadReport
    ) -> None:
        """See :class:`ForeignWeights`; refuses the weights of a classifier."""
        heads = [key for key in report.file_names if HEAD_KEY.match(key)]
        if heads:
            raise Error(
                f'{report.source} contains a classifier ({heads[0]}); use a '
                'pre-training checkpoint, such as a release of MAE or MIRL'
            )
        super().adapt_state_dict(weights, prefix, report)


def _num_segments(num_layers: int, num_segments: int) -> int:
    check_integer(num_segments=num_segments)
    if num_segments > 1 and num_segments % 2 or num_layers % num_segments:
        raise Error(
            f'num_segments={num_segments} does not suit {num_layers} layers; '
            'use 1, or an even number that divides them'
        )
    return num_segments


@MODELS.register_module()
class StemBEiTViT(BEiTPretrainViT):
    """mmpretrain's ``BEiTPretrainViT`` with another stem.

    The mask token replaces the stem output of masked patches. `Three things
    everyone should know about Vision Transformers
    <https://arxiv.org/abs/2203.09795>`_, section 5.

    Args:
        stem (dict): Config of a stem, as in :class:`TokenReductionViT`.
        patch_size (int): Patch size in pixels. Defaults to 16.
        **beit: Further arguments of ``BEiTPretrainViT``.

    Raises:
        Error: If the stem has another patch size.
    """

    def __init__(self, stem: dict, patch_size: int = 16, **beit):
        super().__init__(patch_size=patch_size, **beit)
        self.patch_embed = build_stem(self, stem, patch_size)

    def forward(self, x: Tensor, mask: Tensor | None = None):
        """Return features as the parent does, plain ones without a mask."""
        return super().forward(x, mask)
