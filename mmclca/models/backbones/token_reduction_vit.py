# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from collections.abc import Sequence

from mmengine.model import ModuleList
from mmpretrain.models.backbones import VisionTransformer
from torch import Tensor

from mmclca.registry import MODELS

from ..layers.drop_path import set_drop_path, use_plain_rates
from ..layers.parallel import ParallelLayer, in_parallel
from ..reduction.tokens import Tokens
from .arch import check_arch, first_layers
from .output_forms import OUTPUT_FORMS, check_cla, check_prefix
from .reducible import Reducible
from .vit_embedding import ViTEmbedding

# parameters that mmpretrain does not count as embedding
EMBEDDING = ('cache.', 'dist_token', 'pre_norm.', 'register_tokens')


@MODELS.register_module()
class TokenReductionViT(ViTEmbedding, Reducible, VisionTransformer):
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
        with_cp (bool): Whether to recompute activations in the backward pass
            to save memory. Defaults to False.
        **vit: The other arguments of ``VisionTransformer``. With
            ``out_type='prefix'``, the default beside ``dist_token``, CLS and
            the distillation token come out, (B, 2, C); with ``'featmap'``
            the tokens left are put back in the places of the patches that
            they stand for, zero where none does; with ``'avg_featmap'`` the
            average covers all tokens after these two, and is normalized;
            ``'average'`` is the same without a norm, (B, C), and
            ``'cls_average'`` has CLS before it, (B, 2C).
            ``frozen_stages`` freezes registers and CLR tokens with the
            embedding and keeps frozen layers in eval mode, the reducer is
            always trained.

    Raises:
        ValueError: If ``reduce_at`` is not sorted or outside the layers,
            empty beside a reducer or a cache, if there is no CLS token where
            one is needed (``dist_token`` follows it), if ``num_registers`` is
            no number of tokens, if ``arch`` is not known or lacks a size, if
            ``depth`` is no number of layers or ``branches`` none of
            branches, if there is no such ``drop_path_mode``, or if patches of
            the stem are not of ``patch_size``.
    """

    may_be_new = (*Reducible.may_be_new, 'ln1.', 'ln2.')
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
        drop_path_mode: str = 'linear',
        depth: int | None = None,
        with_cp: bool = False,
        **vit,
    ):
        if dist_token:
            self.num_extra_tokens = 2
            vit = dict(out_type='prefix') | vit
        if isinstance(out_indices, Sequence):
            out_indices = list(out_indices)  # the parent writes into it
        check_arch(arch, self.arch_zoo)
        arch, left_out = first_layers(arch, depth, self.arch_zoo)
        super().__init__(
            arch, img_size, patch_size, in_channels, out_indices, **vit
        )
        rate = vit.get('drop_path_rate', 0.0)
        set_drop_path(self.layers, rate, drop_path_mode)
        self.layers = in_parallel(self.layers, branches)
        self.may_be_left = left_out
        self.with_cp = with_cp
        self.num_prefix = self.num_extra_tokens
        check_prefix(self, dist_token)
        self.set_reduction(reducer, reduce_at, cache)
        if self.cache is not None:
            self.cache.requires_grad_(self.frozen_stages <= 0)
        self.set_embedding(
            patch_size,
            in_channels,
            stem,
            dist_token=dist_token,
            with_cls_pos=with_cls_pos,
            num_registers=num_registers,
        )
        if self.frozen_stages > 0:  # before an optimizer asks
            self._freeze_stages()
        use_plain_rates(self)

    def fuse(self) -> 'TokenReductionViT':
        """See :class:`Reducible`: layers with branches become plain ones."""
        self.layers = ModuleList(
            layer.fuse() if isinstance(layer, ParallelLayer) else layer
            for layer in self.layers
        )
        return self

    def finish(self, x: Tensor) -> Tensor:
        """See :class:`Reducible`."""
        return self.ln1(x) if self.final_norm else x

    def format_tokens(self, tokens: Tokens, hw: tuple[int, int]) -> Tensor:
        """The tokens in the form of ``out_type``."""
        return OUTPUT_FORMS[self.out_type](self, tokens, hw)

    def check_cla(self) -> None:
        """See :class:`Reducible`."""
        check_cla(self)

    def train(self, mode: bool = True) -> 'TokenReductionViT':
        """Set the mode, keep frozen layers in eval mode, return self."""
        super().train(mode)
        if mode and self.frozen_stages > 0:
            self._freeze_stages()
        return self

    def get_layer_depth(
        self, param_name: str, prefix: str = ''
    ) -> tuple[int, int]:
        """Depth of a parameter for layer-wise learning rates.

        The distillation token, registers, CLR tokens and the pre-norm count
        as embedding, parameters of the reducer as the layer of their stage (a
        list of modules, one a stage) or of the first one. See
        ``VisionTransformer.get_layer_depth``.
        """
        depth, num_layers = super().get_layer_depth(param_name, prefix)
        name = param_name[len(prefix) :]
        if not param_name.startswith(prefix):
            return depth, num_layers
        if name.startswith(EMBEDDING):
            return 0, num_layers
        if name.startswith('reducer.'):
            return self.reduce_at[self.stage_of_param(name)] + 1, num_layers
        return depth, num_layers

    def _prepare_pos_embed(self, *_):
        """mmpretrain's load hook, in whose place :class:`Reducible` has one"""
