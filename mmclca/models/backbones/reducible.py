# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""The interface of a backbone whose tokens can be reduced."""

from collections.abc import Callable, Sequence
from math import prod

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from mmclca.registry import MODELS
from mmclca.utils.messages import ascending

from ..reduction.attention import Attended, attend, project_qkv
from ..reduction.reducers import TokenReducer
from ..reduction.tokens import Tokens
from .base import ForeignWeights


class Reducible(ForeignWeights):
    """Mixin over mmpretrain's ``BaseBackbone``: the loop over the layers.

    A backbone says what its parts are, :meth:`embed` at least; unless it
    overrides :meth:`normalize`, :meth:`attention_block` and
    :meth:`ffn_block`, its layers are those of a ViT: mmpretrain's
    ``TransformerEncoderLayer``, or modules with the same parts, ``ln1``, ``attn``, ``ln2`` and ``ffn``. It may override
    :meth:`apply_final_norm` and :meth:`format_tokens`, too. It has ``layers``,
    ``embed_dims``, ``img_size`` and ``patch_resolution`` (height and width of
    an image in pixels and in patches), ``num_prefix`` (tokens before the
    patches, the first of which is CLS, see :class:`Tokens`) and
    ``out_indices``. It calls :meth:`set_reduction` in
    its ``__init__``, and overrides :meth:`fuse` where it can; everything else
    here is not overridden. Pictures, costs, recordings, exports and teachers
    ask for nothing else, so that they work with any such backbone.
    """

    with_cp = False
    final_norm = False  # whether ``apply_final_norm`` normalizes
    rel_pos_bias = False  # whether there is a ``position_bias``
    recorder = None  # see :func:`.recording.recording_copy`
    is_distilled = False  # whether a distillation token follows CLS
    may_be_new = ('cache.', 'reducer.')
    # reason shown to users when the backbone has no CLS token
    why_no_cls = 'with_cls_token=False is not allowed'

    @property
    def stride(self) -> tuple[int, ...]:
        """Height and width of a patch in pixels."""
        sides = zip(self.img_size, self.patch_resolution, strict=True)
        return tuple(pixels // patches for pixels, patches in sides)

    def embed(self, x: Tensor) -> tuple[Tokens, tuple[int, int]]:
        """Map images (B, 3, H, W) to tokens and the grid of patches.

        The tokens are [prefix | patches | registers | CLR]; the CLR tokens
        come from ``self.cache.start``, where there is a cache.
        """
        raise NotImplementedError

    def before_layer(self, i: int, tokens: Tokens) -> Tokens:
        """Return the input of layer i: the output of the last, or the cache.

        Args:
            i (int): Index of the layer.
            tokens (Tokens): What there is so far.
        """
        return tokens

    def normalize(self, layer: nn.Module, x: Tensor) -> Tensor:
        """Normalize the tokens (B, N, C) for the attention of a layer."""
        return layer.ln1(x)

    def attention_block(
        self,
        layer: nn.Module,
        tokens: Tokens,
        key_bias: Tensor | None,
        softmax: Callable | None,
    ) -> tuple[Tensor, Attended]:
        """Run the first half of a layer: tokens (B, N, C) after attention.

        Args:
            layer (nn.Module): One of ``layers``.
            tokens (Tokens): What enters; :meth:`normalize` is applied here.
            key_bias (Tensor, optional): See :meth:`key_bias`.
            softmax (Callable, optional): See :meth:`TokenReducer.softmax`.
        """
        x = self.normalize(layer, tokens.x)
        update, attended = attend(layer.attn, x, key_bias, softmax)
        return tokens.x + update, attended

    def key_bias(self, layer: nn.Module, tokens: Tokens) -> Tensor | None:
        """Return what is added to the logits of a layer.

        That of the reducer, (B, 1, 1, N), and of positions, (B, H, N, N);
        None: nothing.
        """
        bias = self.reducer.key_bias(tokens)
        if not self.rel_pos_bias:
            return bias
        own = self.position_bias(layer, tokens)
        return own if bias is None else own + bias

    @property
    def has_cls(self) -> bool:
        """Whether a CLS token reads the patches, in whatever layers."""
        return bool(self.num_prefix)

    @property
    def ranks_by_cls(self) -> bool:
        """Whether a reducer may rank patches by what CLS reads."""
        return bool(self.num_prefix)

    def read_by_cls(
        self, images: Tensor, entered: Tokens
    ) -> tuple[Tensor, Tokens]:
        """Compute the attention of the CLS token of the last layer.

        Args:
            images (Tensor): (B, 3, H, W).
            entered (Tokens): What the attention of the last of ``layers``
                sees of them.

        Returns:
            tuple[Tensor, Tokens]: The attention, mean over heads, (B, N), and
            the tokens that it is paid to.
        """
        layer = self.layers[-1]
        key_bias = self.key_bias(layer, entered)
        _, attended = self.attention_block(
            layer, entered, key_bias, softmax=None
        )
        return attended.cls_attn().float().mean(dim=1), entered

    def ffn_block(self, layer: nn.Module, x: Tensor) -> Tensor:
        """Run the second half of a layer, tokens (B, N, C) to tokens."""
        return layer.ffn(layer.ln2(x), identity=x)

    def apply_final_norm(self, x: Tensor) -> Tensor:
        """Normalize all tokens (B, N, C) after the last layer."""
        return x

    def format_tokens(self, tokens: Tokens, hw: tuple[int, int]) -> Tensor:
        """Return the output of one of ``out_indices``: CLS, (B, C).

        Args:
            tokens (Tokens): What leaves the layer.
            hw (tuple[int, int]): Height and width of the grid of patches.
        """
        # a view would keep the whole sequence in memory
        return tokens.x[:, 0].clone()

    def fuse(self) -> 'Reducible':
        """Join what is computed side by side, in place, for inference.

        Nothing but ``layers`` is replaced. Here there is nothing to join.
        See :func:`fuse`.

        Returns:
            Reducible: Itself.
        """
        return self

    def check_cla(self) -> None:
        """Refuse settings with which a CLA head would not read raw CLS.

        Raises:
            ValueError: If outputs do not begin with CLS, or are normalized.
        """

    @property
    def reduces(self) -> bool:
        """Whether there is a reducer that may reduce."""
        return type(self.reducer) is not TokenReducer

    def set_reduction(
        self,
        reducer: dict | None = None,
        reduce_at: Sequence[int] | int = (),
        cache: dict | None = None,
    ) -> None:
        """Build reducer and cache; see :class:`TokenReductionViT`.

        Args:
            reducer (dict, optional): Config of a :class:`TokenReducer`.
            reduce_at (Sequence[int] | int): Layers, from 0, that reduce.
            cache (dict, optional): Config of a :class:`CrossLayerCache`.

        Raises:
            ValueError: If ``reduce_at`` is not sorted or outside the layers,
                empty beside a reducer or a cache, if there is no CLS token
                where one is needed, or the reducer cannot protect CLR tokens.
        """
        depth = len(self.layers)
        self.reduce_at = ascending('reduce_at', reduce_at, depth)
        self.stage_of = {layer: s for s, layer in enumerate(self.reduce_at)}
        sizes = dict(
            embed_dims=self.embed_dims,
            num_layers=depth,
            reduce_at=self.reduce_at,
        )
        self.reducer = self._build_reducer(reducer, sizes)
        self.cache = self._build_cache(cache, sizes)
        self.rename_on_load()

    def _build_reducer(self, reducer: dict | None, sizes) -> TokenReducer:
        if reducer is not None and not self.reduce_at:
            raise ValueError(
                f'reducer={reducer["type"]} needs layers, but reduce_at=(); '
                'set reduce_at, for example to (3, 6, 9)'
            )
        counts = dict(
            num_patches=prod(self.patch_resolution),
            num_stages=len(self.reduce_at),
        )
        reducer = MODELS.build(
            reducer or dict(type='mmclca.TokenReducer'),
            default_args=sizes | counts,
        )
        self.check_reducer(reducer)
        return reducer

    def check_reducer(self, reducer: TokenReducer) -> None:
        """Refuse a reducer that the layers do not support.

        Raises:
            ValueError: If it needs CLS attention to rank patches, and the
                backbone has none.
        """
        if reducer.needs_cls_token and not self.ranks_by_cls:
            raise ValueError(
                f'{type(reducer).__name__} needs a CLS token: '
                f'{self.why_no_cls}'
            )

    def _build_cache(self, cache: dict | None, sizes) -> nn.Module | None:
        if cache is None:
            return None
        cache = MODELS.build(cache, default_args=sizes)
        if cache.num_tokens and not self.num_prefix:
            raise ValueError(
                f'CLR tokens start as copies of CLS: {self.why_no_cls}; set '
                'num_tokens=0'
            )
        if cache.num_protected and not self.reducer.can_protect:
            raise ValueError(
                f'{type(self.reducer).__name__} does not support '
                'protect_clr=True; use TopK or EViT'
            )
        return cache

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        """Map images (B, 3, H, W) to the outputs of ``out_indices``."""
        if self.training and self.reducer.has_loss:
            raise ValueError(
                f'{type(self.reducer).__name__} has a loss; use '
                "type='mmclca.TokenReductionClassifier' for the model"
            )
        return self.forward_tokens(x)[0]

    def forward_tokens(self, x: Tensor) -> tuple[tuple[Tensor, ...], Tokens]:
        """Run as ``forward``, and return the final tokens with their trace."""
        tokens, hw = self.embed(x)
        outs, cached, last = [], [], len(self.layers) - 1
        for i, layer in enumerate(self.layers):
            tokens = self.before_layer(i, tokens)
            tokens = self.run_layer(layer, tokens, self.stage_of.get(i))
            if self.cache is not None:
                tokens = self.cache(i, tokens, cached)
            if i == last:
                tokens = tokens.with_x(self.apply_final_norm(tokens.x))
            if i in self.out_indices:
                outs.append(self.format_tokens(tokens, hw))
        return tuple(outs), tokens

    def run_layer(self, layer, tokens: Tokens, stage: int | None) -> Tokens:
        """Run one layer; ``stage`` is None where nothing is reduced."""
        if self.with_cp and torch.is_grad_enabled():
            return checkpoint(
                self._run_layer, layer, tokens, stage, use_reentrant=False
            )
        return self._run_layer(layer, tokens, stage)

    def _run_layer(self, layer, tokens: Tokens, stage: int | None) -> Tokens:
        tokens = self._attend(layer, tokens, stage)
        return tokens.with_x(self.ffn_block(layer, tokens.x))

    def _attend(self, layer, tokens: Tokens, stage: int | None) -> Tokens:
        """Run the first half of a layer; free what it made before the FFN."""
        reducer = self.reducer
        if stage is not None:
            tokens = reducer.before(tokens, stage)
            if reducer.needs_attention:
                tokens = self._reduce_ahead(layer, tokens, stage)
        softmax = reducer.softmax(tokens)
        key_bias = self.key_bias(layer, tokens)
        x, attended = self.attention_block(layer, tokens, key_bias, softmax)
        left = tokens.with_x(x)
        if stage is not None:
            left = reducer.between(left, attended, stage)
        if self.recorder is not None:
            self.recorder.observe(tokens, attended, softmax, left)
        return left

    def _reduce_ahead(self, layer, tokens: Tokens, stage: int) -> Tokens:
        """Reduce before a layer by what its attention would see."""
        with torch.no_grad():
            key_bias = self.key_bias(layer, tokens)
            if type(self).attention_block is not Reducible.attention_block:
                ahead = self.attention_block(
                    layer, tokens, key_bias, softmax=None
                )[1]
            else:  # leaves out what it reads
                x = self.normalize(layer, tokens.x)
                ahead = project_qkv(layer.attn, x, key_bias)
        return self.reducer.ahead(tokens, ahead, stage)

    def get_layer_depth(
        self, param_name: str, prefix: str = ''
    ) -> tuple[int, int]:
        """See :class:`ForeignWeights`; a reducer has that of its stages.

        A list of modules, one a stage, is as deep as the layers that reduce,
        other parameters of the reducer as the first of these.
        """
        name = param_name.removeprefix(prefix)
        if name.startswith('reducer.'):
            name = f'layers.{self.reduce_at[self._stage_of(name)]}.'
        return super().get_layer_depth(name)

    def _stage_of(self, name: str) -> int:
        """Find the stage of a parameter, as ``reducer.stages.0.x``; or 0."""
        _, part, *rest = name.split('.')
        part = getattr(self.reducer, part)
        is_list = isinstance(part, (nn.ModuleList, nn.ParameterList))
        one_a_stage = is_list and len(part) == len(self.reduce_at)
        return int(rest[0]) if one_a_stage else 0


def reduces(backbone: nn.Module) -> bool:
    """Return whether a backbone, of any kind, has a reducer that may
    reduce."""
    return isinstance(backbone, Reducible) and backbone.reduces
