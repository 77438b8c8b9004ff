# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from inspect import Parameter, signature
from typing import Literal

import torch
from mmengine.model import BaseModule, TruncNormalInit
from torch import Tensor

from mmclca.errors import Error
from mmclca.registry import MODELS
from mmclca.utils.messages import check_choice

from ..attention import Attended
from ..keep_rates import list_keep_rates
from ..tokens import Tokens

# initializes linear layers of a module as in vision transformers, in place
init_linear = TruncNormalInit(std=0.02, layer='Linear')


@dataclass(frozen=True)
class BackboneShape:
    """Sizes of a backbone, which it passes to its reducer.

    Args:
        embed_dims (int): Channels C. Defaults to 768.
        num_patches (int): Patches P of an image of size ``img_size``. Defaults
            to 196.
        num_layers (int): Layers. Defaults to 12.
        reduce_at (Sequence[int]): Layers with a reduction, from 0: the layer
            of each stage. Defaults to (3, 6, 9).
    """

    embed_dims: int = 768
    num_patches: int = 196
    num_layers: int = 12
    reduce_at: Sequence[int] = (3, 6, 9)


@dataclass(frozen=True)
class RotarySettings:
    """Settings of any reducer, for backbones with rotary positions.

    They are part of the config of a reducer. Backbones without rotary
    positions ignore them.

    Args:
        merged_position (str): Position of a merged token: 'largest', that of
            its member with the largest weight, of equals the first; or
            'mean', the weighted mean of the coordinates. Defaults to
            'largest'.
        keys (str): Keys that methods such as ToMe compare: 'content', before
            the rotation; or 'rotated', which include the position. Defaults
            to 'content'.

    Raises:
        Error: If a setting is unknown.
    """

    merged_position: Literal['largest', 'mean'] = 'largest'
    keys: Literal['content', 'rotated'] = 'content'

    def __post_init__(self):
        positions = ('largest', 'mean')
        check_choice(positions, merged_position=self.merged_position)
        check_choice(('content', 'rotated'), keys=self.keys)


VIT_BASE = BackboneShape()  # ViT-B/16 at 224 px


@MODELS.register_module()
class TokenReducer(BaseModule):
    """Base class for token-reduction methods, which itself reduces nothing.

    A method overrides ``before_layer`` or ``after_attention``. Both are called
    only in the layers that the backbone lists in ``reduce_at``, numbered as
    stages from 0. The other hooks are called in every layer.

    Args:
        keep_rate (float | Sequence[float]): Share of tokens kept per stage, in
            (0, 1]; one number, or one per stage. Defaults to 1.
        backbone (BackboneShape): Sizes of the backbone, which sets them.
        init_cfg (dict, optional): Initialization config.

    Raises:
        Error: If a keep rate is outside (0, 1], or there is not one per
            stage.
    """

    summary = ''  # one line that helps users to choose a method
    needs_cls_token = False  # whether it uses CLS attention
    can_protect = False  # whether it supports protected tokens
    needs_attention = False  # whether it overrides ``before_attention``
    keeps_places = False  # whether remaining tokens are original patches
    prop_attn = False  # whether token sizes bias the attention
    num_tokens = None  # counts per stage that replace the keep rate
    # settings that count tokens in place of ``keep_rate``
    count_settings: tuple[str, ...] = ()
    needs_teacher = False  # whether its loss needs a teacher's tokens
    rotary = RotarySettings()  # the backbone sets it

    def __init__(
        self,
        keep_rate: float | Sequence[float] = 1.0,
        backbone: BackboneShape = VIT_BASE,
        init_cfg: dict | None = None,
    ):
        super().__init__(init_cfg)
        self.embed_dims = backbone.embed_dims
        self.num_patches = backbone.num_patches
        self.num_layers = backbone.num_layers
        self.reduce_at = backbone.reduce_at
        self.num_stages = len(backbone.reduce_at)
        self.keep_rate = keep_rate

    @property
    def keep_rate(self) -> float | Sequence[float]:
        """Keep rate, or one per stage; changes take effect at once."""
        return self._keep_rate

    @keep_rate.setter
    def keep_rate(self, keep_rate: float | Sequence[float]) -> None:
        if type(self) is TokenReducer and '_keep_rate' in vars(self):
            raise Error(
                f'keep_rate={keep_rate!r} has no effect without a method; '
                "build the model with one, such as method='ToMe'"
            )
        self.keep_rates = list_keep_rates(keep_rate, self.num_stages)
        self._keep_rate = keep_rate

    def extra_repr(self) -> str:
        """Show the layers with a reduction, and keep rates or counts."""
        if type(self) is TokenReducer:
            return ''
        values = {name: getattr(self, name) for name in self.count_settings}
        values = {k: v for k, v in values.items() if v is not None}
        values = values or dict(keep_rate=self.keep_rate)
        values['layers'] = self.layers
        return ', '.join(f'{name}={value}' for name, value in values.items())

    @property
    def layers(self) -> tuple[int, ...]:
        """Layers with a reduction, from 0; fixed when the model is built."""
        return tuple(self.reduce_at)

    @layers.setter
    def layers(self, layers: object) -> None:
        raise Error(
            f'layers={layers!r}: the layers of a built model cannot change; '
            'reduce the original model again, with these layers'
        )

    @property
    def depths(self) -> list[float]:
        """Share of the layers before each stage."""
        return [layer / self.num_layers for layer in self.reduce_at]

    @property
    def has_loss(self) -> bool:
        """Whether there is an auxiliary training loss."""
        return self.needs_teacher or type(self).loss is not TokenReducer.loss

    def before_layer(self, tokens: Tokens, stage: int) -> Tokens:
        """Reduce tokens before the layer."""
        return tokens

    def before_attention(
        self, tokens: Tokens, attended: Attended, stage: int
    ) -> Tokens:
        """Reduce tokens before the attention, by its queries and keys.

        Called if ``needs_attention`` is True; queries and keys are computed
        twice.
        """
        return tokens

    def after_attention(
        self, tokens: Tokens, attended: Attended, stage: int
    ) -> Tokens:
        """Reduce tokens between the attention and the FFN of the layer."""
        return tokens

    def key_bias(self, tokens: Tokens) -> Tensor | None:
        """Return a bias (B, 1, 1, N) of the logits per key, in every layer.

        With ``prop_attn``, it is the log sizes. None: no bias.
        """
        return tokens.log_weight if self.prop_attn else None

    def softmax(self, tokens: Tokens) -> Callable | None:
        """Return a function from logits (B, H, N, N) to weights in a layer.

        None: the softmax of fused attention, which avoids such a map.
        """
        return None

    def loss(self, tokens: Tokens) -> dict[str, Tensor]:
        """Compute auxiliary training losses by name from the final tokens.

        Names must contain 'loss', as mmengine sums these losses, and must
        differ from 'loss', the loss of the head.
        """
        return {}

    def token_loss(self, tokens: Tokens, teacher: Tensor) -> Tensor:
        """Compare the final tokens with the patch tokens of a teacher.

        The target of a token is the average of its patches in the teacher,
        weighted as in the token. The mean squared error is averaged over the
        tokens of an image, then over images, so it does not depend on the
        number of processes.

        Args:
            tokens (Tokens): Final tokens.
            teacher (Tensor): Patch tokens of a teacher, (B, P, C).
        """
        with torch.no_grad():
            weights = tokens.patch_weights.to(teacher)
            total = weights.sum(dim=-1, keepdim=True)  # (B, N, 1)
            stands = (total > 0).to(teacher)
            target = weights @ teacher / total.masked_fill(total == 0, 1.0)
        error = (tokens.features - target).square().mean(dim=-1, keepdim=True)
        counts = stands.sum(dim=1).clamp(min=1)
        return ((stands * error).sum(dim=1) / counts).mean()


def list_settings(reducer_class: type[TokenReducer]) -> list[str]:
    """Return the settings of a method, without those of the backbone.

    The last ones are :class:`RotarySettings`, which each method has. A class
    with ``**kwargs`` also has the settings of its base class.
    """
    names: dict[str, None] = {}
    for base in reducer_class.__mro__:
        parameters = signature(base.__init__).parameters.values()
        names |= {
            parameter.name: None
            for parameter in parameters
            if parameter.kind is Parameter.POSITIONAL_OR_KEYWORD
            or parameter.kind is Parameter.KEYWORD_ONLY
        }
        if not any(x.kind is Parameter.VAR_KEYWORD for x in parameters):
            break
    no_settings = ('self', 'backbone', 'init_cfg')
    settings = [name for name in names if name not in no_settings]
    return settings + [setting.name for setting in fields(RotarySettings)]
