# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""A vision transformer from timm as backbone in a config."""

from collections.abc import Sequence
from typing import Any, Literal, get_args

import timm
from mmpretrain.models.backbones.base_backbone import BaseBackbone
from timm.layers import resample_abs_pos_embed
from torch import Tensor, nn

from mmclca.checkpoints.rename import list_names
from mmclca.checkpoints.report import LoadReport
from mmclca.errors import Error
from mmclca.registry import MODELS
from mmclca.utils.messages import check_choice, check_integer, did_you_mean

from ..backbones import Reducible
from ..backbones.token_reduction_vit import OUTPUT_FORMS
from ..reduction.attention import Attended
from ..reduction.reducers import TokenReducer
from ..reduction.tokens import Tokens
from .support import reduced_class
from .timm_versions import NEEDS_LATER_TIMM, supports_eva

OutType = Literal[
    'raw',
    'cls_token',
    'prefix',
    'average',
    'std',
    'cls_average',
    'cls_std',
    'cls_average_std',
]


@MODELS.register_module()
class TimmViT(Reducible, BaseBackbone):
    """Vision transformer from timm with token reduction.

    For all models of :func:`reduce_tokens`, such as DINOv3 and EVA-02, which
    :class:`TokenReductionViT` does not have. Parameters have timm's names,
    without the classifier and its norm, and weights from timm load by name.
    Positions are resized as in timm.

    Args:
        arch (str): Name in timm, such as 'vit_small_patch16_dinov3'.
        img_size (int | tuple[int, int], optional): Image height and width in
            pixels. Defaults to None, the size in timm.
        out_indices (Sequence[int] | int): Layers with an output. Defaults to
            -1, the last.
        reducer (dict, optional): Config of a :class:`TokenReducer`.
            Defaults to None.
        reduce_at (Sequence[int] | int): Layers, from 0, with a reduction.
            Defaults to ().
        cache (dict, optional): Config of a :class:`CrossLayerCache`.
            Defaults to None.
        final_norm (bool): Whether to normalize the output of the last layer,
            with timm's norm. Defaults to True.
        out_type (str): Form of the outputs, see :class:`TokenReductionViT`.
            Defaults to 'cls_token'.
        frozen_stages (int): First layers to freeze, with the embedding; -1 or
            0: none. Defaults to -1.
        drop_path_rate (float): Stochastic depth rate. Defaults to 0.
        depth (int, optional): Number of first layers to build; weights of the
            other layers are ignored on load. Defaults to None, all.
        with_cp (bool): Whether to recompute activations in the backward pass
            to save memory. Defaults to False.
        init_cfg (dict, optional): Initialization config.

    Raises:
        Error: As :class:`TokenReductionViT`; if ``arch`` is not in timm, or
            its tokens cannot be reduced.
    """

    default_out_indices = -1
    has_layer_features = True
    embedding = (
        'patch_embed.',
        'pos_embed',
        'cls_token',
        'dist_token',
        'reg_token',
        'rope.',
        'norm_pre.',
        'cache.',
    )
    shaped_by = 'arch and img_size'
    why_no_cls = 'the model has no class token'
    layers = property(lambda self: self.net.blocks)
    embed_dims = property(lambda self: self.net.embed_dim)
    num_prefix = property(lambda self: self.net.num_prefix)
    img_size = property(lambda self: self.net.img_size)
    patch_resolution = property(lambda self: self.net.patch_resolution)
    has_cls = ranks_by_cls = property(lambda self: self.net.has_cls)

    def __init__(
        self,
        arch: str,
        img_size: int | tuple[int, int] | None = None,
        out_indices: Sequence[int] | int = -1,
        *,
        reducer: dict | None = None,
        reduce_at: Sequence[int] | int = (),
        cache: dict | None = None,
        final_norm: bool = True,
        out_type: OutType = 'cls_token',
        frozen_stages: int = -1,
        drop_path_rate: float = 0.0,
        depth: int | None = None,
        with_cp: bool = False,
        init_cfg: dict | None = None,
    ):
        super().__init__(init_cfg)
        check_choice(get_args(OutType), out_type=out_type)
        self.arch, self.out_type = arch, out_type
        self.final_norm, self.with_cp = final_norm, with_cp
        self.net = self._build(arch, img_size, drop_path_rate, depth)
        if not self.has_cls and out_type.startswith(('cls', 'prefix')):
            raise Error(
                f'out_type={out_type!r} needs a CLS token, which {arch} '
                "lacks; set out_type to 'average' or 'std'"
            )
        self.out_indices = self._check_layers(out_indices)
        self.set_reduction(reducer, reduce_at, cache)
        check_integer(
            minimum=-1, maximum=len(self.layers), frozen_stages=frozen_stages
        )
        self.frozen_stages = frozen_stages
        if frozen_stages > 0:  # before an optimizer is built
            self._freeze_stages()

    def _build(
        self,
        arch: str,
        img_size: int | tuple[int, int] | None,
        drop_path_rate: float,
        depth: int | None,
    ) -> Any:
        """Build timm's model without its classifier."""
        known = timm.list_models()
        if arch not in known:  # other names download or open files
            hint = did_you_mean(arch, known, limit=3)
            if 'dinov3' in arch and not supports_eva():
                raise Error(f'arch={arch!r} {NEEDS_LATER_TIMM}')
            raise Error(f'arch={arch!r} is not in timm{hint}')
        size: dict[str, Any] = dict(img_size=img_size) if img_size else {}
        try:
            model = timm.create_model(
                arch, drop_path_rate=drop_path_rate, **size
            )
        except (TypeError, AssertionError) as error:
            raise Error(f'{arch} of timm is not built: {error}') from error
        net: Any = reduced_class(model)(model)
        names = {*net.state_dict()}
        norm = net.norm
        net.remove_head()
        net.head = nn.Identity()
        if self.final_norm:
            net.norm = norm
        if depth is not None:
            check_integer(maximum=len(net.blocks), depth=depth)
            net.blocks = net.blocks[:depth]
        # classifier, its norm and other layers
        self.unused = names - {*net.state_dict()}
        return net

    def _check_layers(self, out_indices: Sequence[int] | int) -> list[int]:
        """Return layers counted from 0, in the order of their outputs."""
        if isinstance(out_indices, int):
            out_indices = [out_indices]
        depth = len(self.layers)
        check = [i + depth if i < 0 else i for i in out_indices]
        for layer in check:
            check_integer(minimum=0, maximum=depth - 1, out_indices=layer)
        return check

    def check_reducer(self, reducer: TokenReducer) -> None:
        """See :class:`Reducible`."""
        super().check_reducer(reducer)
        self.net.check_reducer(reducer)

    def embed(self, x: Tensor) -> tuple[Tokens, tuple[int, int]]:
        """See :class:`Reducible`."""
        return self.net.embed_with(x, self.reducer.rotary, self.cache)

    def before_layer(self, i: int, tokens: Tokens) -> Tokens:
        """See :class:`Reducible`."""
        return self.net.before_layer(i, tokens)

    def normalize(self, layer: nn.Module, x: Tensor) -> Tensor:
        """See :class:`Reducible`."""
        return self.net.normalize(layer, x)

    def attention_block(
        self, layer: nn.Module, tokens: Tokens, key_bias, softmax
    ) -> tuple[Tensor, Attended]:
        """See :class:`Reducible`."""
        return self.net.attention_block(layer, tokens, key_bias, softmax)

    def project(self, layer: nn.Module, tokens: Tokens, key_bias) -> Attended:
        """See :class:`Reducible`."""
        return self.net.project(layer, tokens, key_bias)

    def ffn_block(self, layer: nn.Module, x: Tensor) -> Tensor:
        """See :class:`Reducible`."""
        return self.net.ffn_block(layer, x)

    def apply_final_norm(self, x: Tensor) -> Tensor:
        """See :class:`Reducible`."""
        return self.net.norm(x) if self.final_norm else x

    def format_tokens(self, tokens: Tokens, hw: tuple[int, int]) -> Tensor:
        """Return the tokens in the form of ``out_type``."""
        return OUTPUT_FORMS[self.out_type](self, tokens, hw)

    def check_cla(self) -> None:
        """See :class:`Reducible`."""
        if self.out_type not in ('cls_token', 'prefix') or self.final_norm:
            raise Error(
                'CLAHead needs CLS tokens without the final norm; set '
                "out_type='cls_token' and final_norm=False in the backbone"
            )

    def _freeze_stages(self) -> None:
        """Freeze the embedding and the first layers."""
        frozen = [*self.layers[: self.frozen_stages], self.net.patch_embed]
        for part in frozen:
            part.eval().requires_grad_(False)
        names = tuple(f'net.{name}' for name in self.embedding)
        for name, parameter in self.named_parameters():
            if name.startswith((*names, 'cache.')):
                parameter.requires_grad_(False)

    def get_layer_depth(
        self, param_name: str, prefix: str = ''
    ) -> tuple[int, int]:
        """See :class:`ForeignWeights`."""
        name = param_name.removeprefix(prefix).removeprefix('net.')
        if name.startswith('blocks.'):
            name = name.replace('blocks.', 'layers.', 1)
        return super().get_layer_depth(name)

    def rename_state_dict(self, weights: dict, prefix: str) -> list[str]:
        """See :class:`ForeignWeights`; the classifier is dropped."""
        names = list_names(weights, prefix)
        if any(name.startswith(('backbone.', 'net.')) for name in names):
            return []
        tensors = {name: weights.pop(prefix + name) for name in names}
        for name in tensors.keys() - self.unused:
            weights[f'{prefix}backbone.net.{name}'] = tensors[name]
        return [*tensors.keys() & self.unused]

    def adapt_state_dict(
        self, weights: dict[str, Tensor], prefix: str, report: LoadReport
    ) -> None:
        """Resize positions as in timm; start CLR tokens at CLS."""
        name, positions = f'{prefix}net.pos_embed', self.net.pos_embed
        rows = self.num_prefix * self.net.has_pos  # of the prefix
        has_pos = positions is not None and name in weights
        if has_pos and weights[name].shape != positions.shape:
            weights[name] = resample_abs_pos_embed(
                weights[name],
                new_size=list(self.patch_resolution),
                num_prefix_tokens=rows,
            )
            report.resized.append(name)
        cls, clr = f'{prefix}net.cls_token', f'{prefix}cache.clr'
        cache: Any = self.cache
        has_clr = cache is not None and cache.num_tokens
        if not has_clr or clr in weights or cls not in weights:
            return
        cls_pos = weights[name][:, :rows] if has_pos else weights[cls][:, :0]
        started = cache.start_at(weights[cls], cls_pos)
        weights[clr], weights[f'{clr}_pos'] = started
        report.new += [clr, f'{clr}_pos']
