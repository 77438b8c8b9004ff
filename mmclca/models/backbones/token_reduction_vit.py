# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from collections.abc import Sequence

import torch
from mmpretrain.models.backbones import VisionTransformer
from mmpretrain.models.utils import resize_pos_embed
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from mmclca.registry import MODELS
from mmclca.utils.checkpoint import check_backbone, fill
from mmclca.utils.pos_embed import fit_pos_embed, start_clr
from mmclca.utils.renames import rename_to_backbone, rename_to_classifier

from ..attention import attend
from ..drop_path import use_plain_rates
from ..reducers import TokenReducer
from ..tokens import Tokens
from ..trace import patch_weights


@MODELS.register_module()
class TokenReductionViT(VisionTransformer):
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
        with_cp (bool): Whether to recompute activations in the backward pass
            to save memory. Defaults to False.
        **vit: The other arguments of ``VisionTransformer``. With
            ``out_type='featmap'`` the tokens left are put back in the places
            of the patches that they stand for, zero where none does; with
            ``'avg_featmap'`` the average covers all tokens but CLS.
            ``frozen_stages`` freezes registers and CLR tokens with the
            embedding and keeps frozen layers in eval mode, the reducer is
            always trained.

    Raises:
        ValueError: If ``reduce_at`` is not sorted or outside the layers,
            empty beside a reducer or a cache, if there is no CLS token where
            one is needed, or if ``num_registers`` is no number of tokens.
    """

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
        with_cp: bool = False,
        **vit,
    ):
        if isinstance(out_indices, Sequence):
            out_indices = list(out_indices)  # the parent writes into it
        super().__init__(
            arch, img_size, patch_size, in_channels, out_indices, **vit
        )
        self.with_cp = with_cp
        self.reduce_at = _checked(reduce_at, self.num_layers)
        self.stage_of = {layer: s for s, layer in enumerate(self.reduce_at)}
        self.reducer = self._build_reducer(reducer)
        self.cache = self._build_cache(cache)
        self.register_tokens = self._build_registers(num_registers)
        use_plain_rates(self)

    @property
    def reduces(self) -> bool:
        """Whether there is a reducer that may reduce."""
        return type(self.reducer) is not TokenReducer

    def _build_reducer(self, reducer: dict | None) -> TokenReducer:
        if reducer is not None and not self.reduce_at:
            raise ValueError(
                f'reducer={reducer["type"]} with reduce_at=() never reduces: '
                'name its layers, for example reduce_at=(3, 6, 9)'
            )
        height, width = self.patch_resolution
        reducer = MODELS.build(
            reducer or dict(type='mmclca.TokenReducer'),
            default_args=dict(
                embed_dims=self.embed_dims,
                num_patches=height * width,
                num_stages=len(self.reduce_at),
            ),
        )
        if reducer.needs_cls_token and not self.with_cls_token:
            raise ValueError(
                f'{type(reducer).__name__} needs a CLS token: '
                'with_cls_token=False is not allowed'
            )
        return reducer

    def _build_cache(self, cache: dict | None):
        if cache is None:
            return None
        if not self.with_cls_token:
            raise ValueError(
                'the CLR tokens of a cache start as copies of CLS: '
                'with_cls_token=False is not allowed'
            )
        cache = MODELS.build(
            cache,
            default_args=dict(
                embed_dims=self.embed_dims,
                num_layers=self.num_layers,
                reduce_at=self.reduce_at,
            ),
        )
        # CLR tokens belong to the embedding, which is frozen with any stage
        return cache.requires_grad_(self.frozen_stages <= 0)

    def _build_registers(self, num_registers: int) -> nn.Parameter | None:
        if type(num_registers) is not int or num_registers < 0:
            raise ValueError(
                f'num_registers={num_registers!r} is not allowed: give 0, or '
                'as many as the weights have, for example 4'
            )
        if not num_registers:
            return None
        # equal ones would get equal gradients
        registers = 1e-6 * torch.randn(1, num_registers, self.embed_dims)
        return nn.Parameter(registers, requires_grad=self.frozen_stages <= 0)

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        """Images (B, 3, H, W) to the features of ``out_indices``."""
        outs, tokens = self.forward_tokens(x)
        reducer = self.reducer
        if self.training and (reducer.needs_teacher or reducer.loss(tokens)):
            raise ValueError(
                f'{type(reducer).__name__} has a loss that this '
                "classifier would leave out: use type='mmclca."
                "TokenReductionClassifier' for the model"
            )
        return outs

    def forward_tokens(self, x: Tensor) -> tuple[tuple[Tensor, ...], Tokens]:
        """As ``forward``, with the final tokens and their trace."""
        tokens, hw = self.embed(x)
        outs, cached = [], []
        for i, layer in enumerate(self.layers):
            tokens = self.run_layer(layer, tokens, self.stage_of.get(i))
            if self.cache is not None:
                tokens = self.cache(i, tokens, cached)
            if i == self.num_layers - 1 and self.final_norm:
                tokens = tokens.with_x(self.ln1(tokens.x))
            if i in self.out_indices:
                outs.append(self.format_tokens(tokens, hw))
        return tuple(outs), tokens

    def embed(self, x: Tensor) -> tuple[Tokens, tuple[int, int]]:
        """Images (B, 3, H, W) to tokens and the grid of patches.

        The tokens are [CLS | patches | registers | CLR].
        """
        x, hw = self.patch_embed(x)
        if self.cls_token is not None:
            cls_token = self.cls_token.expand(x.size(0), -1, -1)
            x = torch.cat((cls_token, x), dim=1)
        x = x + resize_pos_embed(
            self.pos_embed,
            self.patch_resolution,
            hw,
            mode=self.interpolate_mode,
            num_extra_tokens=self.num_extra_tokens,
        )
        tokens = Tokens(x, num_patches=hw[0] * hw[1])
        if self.register_tokens is not None:
            registers = self.register_tokens.expand(x.size(0), -1, -1)
            tokens = tokens.append(registers, cached=False)
        if self.cache is not None:
            tokens = self.cache.start(tokens)
        x = self.pre_norm(self.drop_after_pos(tokens.x))
        return tokens.with_x(x), hw

    def run_layer(self, layer, tokens: Tokens, stage: int | None) -> Tokens:
        """One layer; ``stage`` is None where nothing is reduced."""
        if self.with_cp and torch.is_grad_enabled():
            return checkpoint(
                self._run_layer, layer, tokens, stage, use_reentrant=False
            )
        return self._run_layer(layer, tokens, stage)

    def _run_layer(self, layer, tokens: Tokens, stage: int | None):
        tokens = self._attend(layer, tokens, stage)
        x = layer.ffn(layer.ln2(tokens.x), identity=tokens.x)
        return tokens.with_x(x)

    def _attend(self, layer, tokens: Tokens, stage: int | None) -> Tokens:
        """First half of a layer; what it made is freed ahead of the FFN."""
        reducer = self.reducer
        if stage is not None:
            tokens = reducer.before(tokens, stage)
        update, attended = attend(
            layer.attn,
            layer.ln1(tokens.x),
            reducer.key_bias(tokens),
            reducer.softmax(tokens),
        )
        tokens = tokens.with_x(tokens.x + update)
        if stage is not None:
            tokens = reducer.between(tokens, attended, stage)
        return tokens

    def format_tokens(self, tokens: Tokens, hw: tuple[int, int]) -> Tensor:
        """The tokens in the form of ``out_type``."""
        if self.out_type == 'cls_token':
            # a view would keep the whole sequence in memory
            return tokens.x[:, 0].clone()
        if self.out_type == 'avg_featmap':
            return self.ln2(tokens.average(self.num_extra_tokens)[:, 0])
        if self.out_type != 'featmap' or not tokens.trace:
            return self._format_output(tokens.x, hw)
        B, _, C = tokens.x.shape
        weights = patch_weights(
            tokens.trace, B, hw[0] * hw[1], self.num_extra_tokens
        ).transpose(1, 2)  # (B, P, N), float32: in float16 small ones vanish
        # a patch that no token stands for gets zeros, not a division by zero
        total = weights.sum(-1, keepdim=True)
        weights = weights / total.masked_fill(total == 0, 1.0)
        featmap = weights.to(tokens.x) @ tokens.x
        return featmap.transpose(1, 2).reshape(B, C, *hw)

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

        Registers, CLR tokens and the pre-norm count as embedding, parameters
        of the reducer as the layer of their stage (a list of modules, one a
        stage) or of the first one. See
        ``VisionTransformer.get_layer_depth``.
        """
        depth, num_layers = super().get_layer_depth(param_name, prefix)
        name = param_name[len(prefix) :]
        if not param_name.startswith(prefix):
            return depth, num_layers
        if name.startswith(('cache.', 'pre_norm.', 'register_tokens')):
            return 0, num_layers
        if name.startswith('reducer.'):
            return self.reduce_at[self._stage_of_param(name)] + 1, num_layers
        return depth, num_layers

    def _stage_of_param(self, name: str) -> int:
        """Stage of a parameter of the reducer; 0 where all stages share it."""
        _, part, *rest = name.split('.')
        part = getattr(self.reducer, part)
        is_list = isinstance(part, (nn.ModuleList, nn.ParameterList))
        one_a_stage = is_list and len(part) == len(self.reduce_at)
        return int(rest[0]) if one_a_stage else 0

    def _checkpoint_filter(self, state_dict, prefix, *_):
        """Load hook that mmpretrain's classifiers put on themselves."""
        rename_to_classifier(state_dict, prefix)

    def _prepare_pos_embed(self, state_dict, prefix, metadata, *_):
        """Load hook of the backbone: names, positions, CLR, and a check."""
        rename_to_backbone(state_dict, prefix)
        with_pos = fit_pos_embed(self, state_dict, prefix)
        start_clr(self, state_dict, prefix, with_pos)
        if 'source' in metadata:  # loaded from a file
            check_backbone(self, state_dict, prefix, metadata)
            fill(self.state_dict(), state_dict, prefix, metadata)


def _checked(
    reduce_at: Sequence[int] | int, num_layers: int
) -> tuple[int, ...]:
    """``reduce_at`` as a tuple; ValueError where it is not allowed."""
    listed = isinstance(reduce_at, Sequence)
    layers = tuple(reduce_at) if listed else (reduce_at,)
    inside = all(
        type(layer) is int and 0 <= layer < num_layers for layer in layers
    )
    if not inside or list(layers) != sorted(set(layers)):
        raise ValueError(
            f'reduce_at={reduce_at!r} must be ascending, different layers '
            f'(integers) within 0 to {num_layers - 1}'
        )
    return layers
