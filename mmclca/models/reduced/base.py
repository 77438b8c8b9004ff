# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""The loop of a :class:`Reducible` over the layers of another library."""

from collections.abc import Callable
from math import inf
from typing import Any, NamedTuple

from torch import Tensor, nn
from torch.fx import Proxy

from mmclca.errors import Error

from ..backbones import Reducible
from ..heads import CLAHead
from ..reduction.attention import Attended
from ..reduction.tokens import Tokens
from .calls import AttentionInputs, call, delegate, same_shape


class LayerFunctions(NamedTuple):
    """Functions that run a class of layers.

    Args:
        normalize (Callable): Maps a layer and tokens (B, N, C) to the input of
            the attention.
        project (Callable): Maps a layer, this input and
            :class:`AttentionInputs` to an :class:`Attended`.
        attend (Callable): Maps the same to the output of the attention and an
            :class:`Attended`.
        scale (Callable): Maps a layer and this output to the update of the
            residual stream.
        ffn (Callable): Maps a layer and tokens to the output of the layer.
    """

    normalize: Callable[[Any, Tensor], Tensor]
    project: Callable[[Any, Tensor, AttentionInputs], Attended]
    attend: Callable[[Any, Tensor, AttentionInputs], tuple[Tensor, Attended]]
    scale: Callable[[Any, Tensor], Tensor]
    ffn: Callable[[Any, Tensor], Tensor]


NO_GRAPH = (
    '{tool} cannot follow token reduction, which depends on the image; for '
    'features use forward_intermediates() or hooks, for a graph torch.export, '
    'torch.jit.trace or mmclca.export_onnx'
)


class ReducedModel(Reducible):
    """Mixin over a vision transformer of another library.

    The result is backbone and classifier in one; parameters keep their names.
    The base class after it has timm's ``forward_head``, ``get_classifier``,
    ``reset_classifier`` and ``set_grad_checkpointing``. A subclass also
    defines ``cls_token``, ``has_pos`` (whether it has a position),
    ``get_functions`` (the :class:`LayerFunctions` of a layer) and
    ``remove_head``.

    Args:
        model (nn.Module): The model, which must not be used any more.
    """

    losses: dict[str, Tensor] = {}
    pool_from = 1  # tokens before those that the head averages
    why_no_cls = 'the model has no class token'
    backbone = property(lambda self: self)  # for costs and pictures
    # whether the classifier is a CLA head
    has_cla = property(lambda self: self.cache is not None)

    def __init__(self, model: nn.Module):
        attributes = vars(model)  # Transformers names the classes num_labels
        vars(self).update(
            dict(num_classes=attributes.get('num_labels', 0)) | attributes
        )
        for module in self.delegates():
            delegate(module)

    def delegates(self) -> list[nn.Module]:
        """Return the modules that compute something else than the original.

        They are called as modules, see :class:`.calls.Delegating`.
        """
        return [*self.layers]

    def __getstate__(self) -> dict:
        # copies, such as an EMA, cannot have the graph of a loss
        return super().__getstate__() | dict(losses={})

    def __setattr__(self, name: str, value: Any) -> None:
        if name in ('r', 'keep_rate', 'num_tokens'):
            raise AttributeError(
                f'{name}={value!r} would have no effect on the model; set '
                'model.reducer.keep_rate or model.reducer.num_tokens, for '
                'example num_tokens=[150, 100, 50]'
            )
        super().__setattr__(name, value)

    def rename_on_load(self) -> None:
        """Load weights with the names of the other library only."""

    def reduce(
        self, reducer: dict | None, layers: tuple[int, ...], clca: bool
    ) -> None:
        """Add a reducer and, for CLCA, a cache and a CLA head, in place.

        Args:
            reducer (dict, optional): Config of a :class:`TokenReducer`.
            layers (tuple[int]): Layers, from 0, with a reduction.
            clca (bool): Whether to add a cache and a CLA head.
        """
        settings = dict(type='mmclca.CrossLayerCache') if clca else None
        self.out_indices = sorted({*layers * clca, len(self.layers) - 1})
        self.set_reduction(reducer, layers, settings)
        if clca:
            self.remove_head()
            self.reset_classifier(self.num_classes)
            cache: Any = self.cache
            cache.clr.data = self.cls_token.detach().clone()
            cache.clr_pos.data *= self.has_pos
            self._match(cache)
        self._match(self.reducer)

    def _match(self, part: nn.Module) -> nn.Module:
        """Move a new part to the device, type and mode of the model."""
        like = next(self.layers.parameters())
        return part.to(like).train(self.training)

    def normalize(self, layer: nn.Module, x: Tensor) -> Tensor:
        """See :class:`Reducible`."""
        return self.get_functions(layer).normalize(layer, x)

    def attention_block(
        self, layer: nn.Module, tokens: Tokens, key_bias, softmax
    ) -> tuple[Tensor, Attended]:
        """See :class:`Reducible`."""
        functions = self.get_functions(layer)
        x = self.normalize(layer, tokens.features)
        inputs = AttentionInputs(key_bias, tokens.rotary, softmax)
        y, attended = functions.attend(layer, x, inputs)
        return tokens.features + functions.scale(layer, y), attended

    def ffn_block(self, layer: nn.Module, x: Tensor) -> Tensor:
        """See :class:`Reducible`."""
        return self.get_functions(layer).ffn(layer, x)

    def project(self, layer: nn.Module, tokens: Tokens, key_bias) -> Attended:
        """See :class:`Reducible`."""
        x = self.normalize(layer, tokens.features)
        inputs = AttentionInputs(key_bias, tokens.rotary)
        return self.get_functions(layer).project(layer, x, inputs)

    def _run_layer(self, layer, tokens: Tokens, stage: int | None) -> Tokens:
        """Call a layer as a module, so that its hooks run."""
        reduce_and_run = super()._run_layer

        def function(layer, x):
            entered = tokens.with_features(
                same_shape(tokens.features, x, layer)
            )
            left = reduce_and_run(layer, entered, stage)
            return left.features, left

        x, left = call(layer, tokens.features, function)
        return left.with_features(same_shape(left.features, x, layer))

    def format_tokens(self, tokens: Tokens, hw: tuple[int, int]) -> Tensor:
        """Return all tokens (B, N, C) for the head, CLS for a CLA head.

        Padding and masked tokens are set to the average of the others, which
        changes neither the average nor the maximum.
        """
        if self.has_cla:
            return super().format_tokens(tokens, hw)
        if tokens.weight is None:
            return tokens.features
        kept = (tokens.weight > 0).unsqueeze(-1)
        return tokens.features.where(kept, tokens.average(self.pool_from))

    def pool_bias(self, tokens: Tokens) -> Tensor:
        """Return the bias of keys in attention pooling, (B, 1, 1, N).

        It is -inf for padding and masked tokens.
        """
        bias = self.reducer.key_bias(tokens)
        bias = tokens.weights[:, None, None] * 0 if bias is None else bias
        return bias.masked_fill(tokens.weights[:, None, None] <= 0, -inf)

    def _features(self, x: Tensor) -> tuple:
        """Return the input of the head, and tokens if they have weights."""
        outs, tokens = self.forward_tokens(x)
        if self.training:
            self.losses = self.reducer.loss(tokens)
        weighted = None if tokens.weight is None else tokens
        return outs if self.has_cla else outs[0], weighted

    def forward_features(self, x: Tensor) -> Tensor | tuple[Tensor, ...]:
        """Map images (B, 3, H, W) to the input of :meth:`forward_head`.

        These are the remaining tokens (B, N, C), normalized; for a CLA head,
        the CLS tokens (B, C) of its layers.
        """
        return self._features(x)[0]

    def forward(self, x: Tensor) -> Tensor:
        """Map images (B, 3, H, W) to the output of the original model."""
        if isinstance(x, Proxy):
            raise Error(NO_GRAPH.format(tool='torch.fx'))
        features, tokens = self._features(x)
        biased = self.attn_pool is not None and tokens is not None
        return self.forward_head(tokens if biased else features)

    def __prepare_scriptable__(self) -> None:
        """Refuse ``torch.jit.script``."""
        raise Error(NO_GRAPH.format(tool='torch.jit.script'))

    def forward_head(self, x, pre_logits: bool = False) -> Tensor:
        """Map the output of :meth:`forward_features` to class scores."""
        if not self.has_cla:
            return super().forward_head(x, pre_logits)
        return self.head.pre_logits(x) if pre_logits else self.head(x)

    def get_classifier(self) -> nn.Module:
        """See timm."""
        return self.head if self.has_cla else super().get_classifier()

    def reset_classifier(
        self, num_classes: int, global_pool: str | None = None
    ) -> None:
        """See timm; a CLA head stays one, without classes its features."""
        if not self.has_cla:
            return super().reset_classifier(num_classes, global_pool)
        self.num_classes, inputs = num_classes, len(self.out_indices)
        head = CLAHead(num_classes or 1, self.embed_dims, inputs)
        if not num_classes:
            head.layers[-1] = nn.Identity()
        self.head = self._match(head)

    def set_grad_checkpointing(self, enable: bool = True) -> None:
        """Set whether layers are recomputed in the backward pass."""
        super().set_grad_checkpointing(enable)
        self.with_cp = enable

    def auxiliary_loss(self) -> Tensor:
        """Return the sum of the reducer's losses, to add to the loss.

        Methods such as :class:`DynamicViT`, and :class:`DiffRate` with
        ``target``, have losses; for others it is 0. The losses belong to the
        last forward pass in training mode in this process: call it before the
        next one. Copies of the model start without.
        """
        zero = next(self.layers.parameters()).new_zeros(())
        return sum(self.losses.values(), zero)
