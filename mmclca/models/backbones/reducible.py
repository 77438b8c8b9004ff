# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""The interface of a backbone with token reduction."""

from collections.abc import Callable, Sequence
from dataclasses import fields
from math import prod

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from mmclca.errors import Error
from mmclca.registry import MODELS
from mmclca.utils.messages import check_ascending
from mmclca.utils.torch_versions import forget_casts

from ..reduction.attention import Attended, attend, project_qkv
from ..reduction.reducers import TokenReducer
from ..reduction.reducers.base import BackboneShape, RotarySettings
from ..reduction.tokens import Tokens
from .base import ForeignWeights

# attributes that a backbone sets; in a property, torch hides which is missing
REQUIRED = (
    'layers',
    'embed_dims',
    'img_size',
    'patch_resolution',
    'num_prefix',
    'out_indices',
)


class Reducible(ForeignWeights):
    """Mixin over a backbone, such as ``BaseBackbone``: the loop over layers.

    A backbone implements :meth:`embed`. It has ``layers``, ``embed_dims``,
    ``img_size`` and ``patch_resolution`` (image height and width in pixels and
    in patches), ``num_prefix`` (tokens before the patches, starting with CLS;
    see :class:`Tokens`) and ``out_indices``. Its ``__init__`` calls
    :meth:`set_reduction`.

    By default, layers are ViT layers: mmpretrain's ``TransformerEncoderLayer``
    or modules with the same parts ``ln1``, ``attn``, ``ln2`` and ``ffn``. For
    other layers, override :meth:`normalize`, :meth:`attention_block` and
    :meth:`ffn_block`. Optional overrides are ``all_layers``,
    :meth:`before_layer`, :meth:`after_layer`, :meth:`apply_final_norm`,
    :meth:`format_tokens`, :meth:`fuse` and the checks. Do not override the
    loop: :meth:`forward_tokens`, :meth:`run_layers` and :meth:`run_layer`.
    Pictures, costs, recordings, exports and teachers use only this interface,
    so they work with any such backbone. A backbone that sets
    ``why_not_reducible`` accepts no reducer.
    """

    img_size: tuple[int, int]
    num_prefix: int
    out_indices: Sequence[int]
    position_bias: Callable[[nn.Module, Tokens], Tensor]
    with_cp = False
    final_norm = False  # whether ``apply_final_norm`` normalizes tokens
    rel_pos_bias = False  # True requires a method ``position_bias``
    recorder = None  # see :func:`.recording.recording_copy`
    is_distilled = False  # whether a distillation token follows CLS
    # setting ``out_indices`` for the last layer; None: no such setting
    default_out_indices: int | Sequence[int] | None = None
    # whether it has the settings ``depth`` and ``out_type`` as
    # TokenReductionViT has, for a head over several layers
    has_layer_features = False
    may_be_new = ('cache.', 'reducer.')
    # reason shown to users when the backbone lacks a CLS token
    why_no_cls = 'with_cls_token=False is not allowed'

    @property
    def stride(self) -> tuple[int, ...]:
        """Patch height and width in pixels."""
        sides = zip(self.img_size, self.patch_resolution, strict=True)
        return tuple(pixels // patches for pixels, patches in sides)

    def embed(self, x: Tensor) -> tuple[Tokens, tuple[int, int]]:
        """Map images (B, 3, H, W) to tokens and the patch grid (h, w).

        The tokens are [prefix | patches | registers | CLR]. With a cache, the
        CLR tokens come from ``self.cache.start``.
        """
        raise NotImplementedError

    def before_layer(self, i: int, tokens: Tokens) -> Tokens:
        """Return the input tokens of layer i, by default unchanged.

        Args:
            i (int): Index of the layer.
            tokens (Tokens): Output of the previous layer or the cache.
        """
        return tokens

    def after_layer(self, i: int, tokens: Tokens) -> Tokens:
        """Return the output tokens of layer i, by default unchanged.

        Args:
            i (int): Index of the layer.
            tokens (Tokens): Output of the layer, before the cache.
        """
        return tokens

    def normalize(self, layer: nn.Module, x: Tensor) -> Tensor:
        """Normalize tokens (B, N, C) before the attention of a layer."""
        return layer.ln1(x)

    def attention_block(
        self,
        layer: nn.Module,
        tokens: Tokens,
        key_bias: Tensor | None,
        softmax: Callable | None,
    ) -> tuple[Tensor, Attended]:
        """Run attention with its residual, the first half of a layer.

        Args:
            layer (nn.Module): One of ``layers``.
            tokens (Tokens): Input tokens, not yet normalized.
            key_bias (Tensor, optional): See :meth:`key_bias`.
            softmax (Callable, optional): See :meth:`TokenReducer.softmax`.

        Returns:
            tuple[Tensor, Attended]: Tokens (B, N, C), and queries, keys and
            values.
        """
        x = self.normalize(layer, tokens.features)
        update, attended = attend(layer.attn, x, key_bias, softmax)
        return tokens.features + update, attended

    def key_bias(self, layer: nn.Module, tokens: Tokens) -> Tensor | None:
        """Return the bias of the attention logits, or None.

        The sum of the reducer's bias (B, 1, 1, N) and the position bias
        (B, H, N, N).
        """
        bias = self.reducer.key_bias(tokens)
        if not self.rel_pos_bias:
            return bias
        position = self.position_bias(layer, tokens)
        return position if bias is None else position + bias

    @property
    def has_cls(self) -> bool:
        """Whether a CLS token attends to the patches in any layer."""
        return bool(self.num_prefix)

    @property
    def ranks_by_cls(self) -> bool:
        """Whether a reducer can score patches by CLS attention."""
        return bool(self.num_prefix)

    def last_cls_attention(
        self, images: Tensor, entered: Tokens
    ) -> tuple[Tensor, Tokens]:
        """Compute the CLS attention of the last layer.

        Args:
            images (Tensor): Images (B, 3, H, W).
            entered (Tokens): Attention input of the last layer for these
                images.

        Returns:
            tuple[Tensor, Tokens]: The attention, mean over heads, (B, N), and
            the attended tokens.
        """
        layer = self.all_layers[-1]
        key_bias = self.key_bias(layer, entered)
        _, attended = self.attention_block(
            layer, entered, key_bias, softmax=None
        )
        return attended.cls_attn().float().mean(dim=1), entered

    def ffn_block(self, layer: nn.Module, x: Tensor) -> Tensor:
        """Run the FFN with its residual, the second half of a layer."""
        return layer.ffn(layer.ln2(x), identity=x)

    def apply_final_norm(self, x: Tensor) -> Tensor:
        """Normalize all tokens (B, N, C) after the last layer."""
        return x

    def format_tokens(self, tokens: Tokens, hw: tuple[int, int]) -> Tensor:
        """Return the output of a layer in ``out_indices``: CLS, (B, C).

        Args:
            tokens (Tokens): Output tokens of the layer.
            hw (tuple[int, int]): Height and width of the patch grid.
        """
        # a view would keep all tokens in memory
        return tokens.features[:, 0].clone()

    def fuse(self) -> 'Reducible':
        """Merge parallel layers for inference, in place; here a no-op.

        Replace nothing except ``layers``. See :func:`fuse`.

        Returns:
            Reducible: Itself.
        """
        return self

    def check_cla(self) -> None:
        """Refuse settings without raw CLS tokens for a CLA head.

        Raises:
            Error: If outputs do not start with CLS, or are normalized.
        """

    @property
    def reduces(self) -> bool:
        """Whether the backbone has a token-reduction method."""
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
            reduce_at (Sequence[int] | int): Layers, from 0, with a reduction.
            cache (dict, optional): Config of a :class:`CrossLayerCache`.

        Raises:
            Error: If the backbone lacks an attribute of ``REQUIRED``; if
                ``reduce_at`` is not ascending, outside the layers,
                or missing for a reducer or cache; if a required CLS token is
                missing; if the reducer cannot protect CLR tokens.
        """
        if missing := [x for x in REQUIRED if not hasattr(self, x)]:
            raise Error(
                f'{type(self).__name__} lacks {", ".join(missing)}; set '
                'these attributes before set_reduction()'
            )
        self.reduce_at = check_ascending(
            'reduce_at', reduce_at, len(self.all_layers)
        )
        self.stage_of = {layer: s for s, layer in enumerate(self.reduce_at)}
        self.reducer = self._build_reducer(reducer)
        self.cache = self._build_cache(cache)
        self.rename_on_load()

    def _build_reducer(self, reducer: dict | None) -> TokenReducer:
        if reducer is not None and not self.reduce_at:
            raise Error(
                f'reducer={reducer["type"]} needs layers, but reduce_at=(); '
                'set reduce_at, for example to (3, 6, 9)'
            )
        backbone = BackboneShape(
            embed_dims=self.embed_dims,
            num_patches=prod(self.patch_resolution),
            num_layers=len(self.all_layers),
            reduce_at=self.reduce_at,
        )
        config = dict(reducer or dict(type='mmclca.TokenReducer'))
        names = {field.name for field in fields(RotarySettings)}
        rotary = {name: config.pop(name) for name in names & config.keys()}
        built = MODELS.build(config, default_args=dict(backbone=backbone))
        built.rotary = RotarySettings(**rotary)
        self.check_reducer(built)
        return built

    def check_reducer(self, reducer: TokenReducer) -> None:
        """Refuse a reducer that the layers do not support.

        Raises:
            Error: If it scores patches by CLS attention, which the
                backbone lacks.
        """
        if reducer.needs_cls_token and not self.ranks_by_cls:
            raise Error(
                f'{type(reducer).__name__} needs a CLS token: '
                f'{self.why_no_cls}'
            )

    def _build_cache(self, cache: dict | None) -> nn.Module | None:
        if cache is None:
            return None
        sizes = dict(
            embed_dims=self.embed_dims,
            num_layers=len(self.all_layers),
            reduce_at=self.reduce_at,
        )
        built = MODELS.build(cache, default_args=sizes)
        if built.num_tokens and not self.num_prefix:
            raise Error(
                f'CLR tokens start as copies of CLS: {self.why_no_cls}; set '
                'num_tokens=0'
            )
        if built.num_protected and not self.reducer.can_protect:
            raise Error(
                f'{type(self.reducer).__name__} does not support '
                'protect_clr=True; use TopK or EViT'
            )
        return built

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        """Map images (B, 3, H, W) to the outputs of ``out_indices``."""
        if self.training and self.reducer.has_loss:
            raise Error(
                f'{type(self.reducer).__name__} has a loss; use '
                "type='mmclca.TokenReductionClassifier' for the model"
            )
        return self.forward_tokens(x)[0]

    def forward_tokens(self, x: Tensor) -> tuple[tuple[Tensor, ...], Tokens]:
        """Run ``forward``; also return the final tokens with their trace."""
        tokens, hw = self.embed(x)
        outs, last = [], len(self.all_layers) - 1

        def collect(i: int, tokens: Tokens) -> None:
            if i in self.out_indices and i != last:
                outs.append(self.format_tokens(tokens, hw))

        tokens = self.run_layers(tokens, collect)
        tokens = tokens.with_features(self.apply_final_norm(tokens.features))
        if last in self.out_indices:
            outs.append(self.format_tokens(tokens, hw))
        return tuple(outs), tokens

    def run_layers(
        self, tokens: Tokens, observe: Callable[[int, Tokens], None]
    ) -> Tokens:
        """Run all layers; ``observe`` gets index and output of each."""
        cached = []
        for i, layer in enumerate(self.all_layers):
            tokens = self.before_layer(i, tokens)
            tokens = self.run_layer(layer, tokens, self.stage_of.get(i))
            tokens = self.after_layer(i, tokens)
            if self.cache is not None:
                tokens = self.cache(i, tokens, cached)
            observe(i, tokens)
        return tokens

    def run_layer(self, layer, tokens: Tokens, stage: int | None) -> Tokens:
        """Run one layer; ``stage`` is None without a reduction."""
        if self.with_cp and torch.is_grad_enabled():
            return checkpoint(
                self._run_layer, layer, tokens, stage, use_reentrant=False
            )
        return self._run_layer(layer, tokens, stage)

    def _run_layer(self, layer, tokens: Tokens, stage: int | None) -> Tokens:
        tokens = self._attend(layer, tokens, stage)
        return tokens.with_features(self.ffn_block(layer, tokens.features))

    def _attend(self, layer, tokens: Tokens, stage: int | None) -> Tokens:
        """Run the first half of a layer, with the reduction.

        A separate method, so that its tensors are freed before the FFN.
        """
        reducer = self.reducer
        if stage is not None:
            tokens = reducer.before_layer(tokens, stage)
            if reducer.needs_attention:
                tokens = self._reduce_before_attention(layer, tokens, stage)
        softmax = reducer.softmax(tokens)
        key_bias = self.key_bias(layer, tokens)
        x, attended = self.attention_block(layer, tokens, key_bias, softmax)
        left = tokens.with_features(x)
        if stage is not None:
            left = reducer.after_attention(left, attended, stage)
        if self.recorder is not None:
            self.recorder.observe(tokens, attended, softmax, left)
        return left

    def _reduce_before_attention(
        self, layer, tokens: Tokens, stage: int
    ) -> Tokens:
        """Reduce before a layer, by the queries and keys of its attention."""
        with torch.no_grad():
            key_bias = self.key_bias(layer, tokens)
            attended = self.project(layer, tokens, key_bias)
        forget_casts()
        return self.reducer.before_attention(tokens, attended, stage)

    def project(self, layer, tokens: Tokens, key_bias) -> Attended:
        """Return queries, keys and values of a layer, without its output."""
        if type(self).attention_block is not Reducible.attention_block:
            return self.attention_block(layer, tokens, key_bias, None)[1]
        x = self.normalize(layer, tokens.features)
        return project_qkv(layer.attn, x, key_bias)

    def get_layer_depth(
        self, param_name: str, prefix: str = ''
    ) -> tuple[int, int]:
        """See :class:`ForeignWeights`; reducers count as layers.

        A module list with one entry per stage has the depths of the reducing
        layers; other reducer parameters have the depth of the first one.
        """
        name = param_name.removeprefix(prefix)
        if name.startswith('reducer.'):
            name = f'layers.{self.reduce_at[self._find_stage(name)]}.'
        return super().get_layer_depth(name)

    def _find_stage(self, name: str) -> int:
        """Return the stage of a parameter, such as ``reducer.stages.0.x``."""
        _, part, *indices = name.split('.')
        part = getattr(self.reducer, part)
        is_list = isinstance(part, (nn.ModuleList, nn.ParameterList))
        is_per_stage = is_list and len(part) == len(self.reduce_at)
        return int(indices[0]) if is_per_stage else 0


def reduces(backbone: nn.Module) -> bool:
    """Return whether any kind of backbone has a token-reduction method."""
    return isinstance(backbone, Reducible) and backbone.reduces
