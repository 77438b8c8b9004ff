# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Vision transformers of Hugging Face Transformers with token reduction."""

from collections.abc import Iterable, Sequence
from functools import cache, wraps
from importlib import import_module
from inspect import signature
from typing import Any

import torch
from mmpretrain.models.utils import to_2tuple
from torch import Tensor, nn

from mmclca.errors import Error

from ..reduction.tokens import Tokens
from .base import LayerFunctions, ReducedModel
from .transformers_families import TransformersFamily, find_family
from .transformers_heads import TransformersHead, refuse_set


class ReducedTransformer(ReducedModel, TransformersHead):
    """A vision transformer of Transformers with token reduction.

    Made by :func:`reduce_tokens`: an instance of this class and of the class
    of the original, whose name, inputs and outputs it has. With ``labels``,
    the loss includes :meth:`auxiliary_loss`.
    """

    original: Any  # the class without token reduction
    inputs: tuple[str, ...]  # names of its inputs
    attn_pool = None
    dtype: torch.dtype  # of the parameters
    family: TransformersFamily = property(lambda self: find_family(self.base))
    embed_dims = property(lambda self: self.base.config.hidden_size)
    img_size = property(lambda self: to_2tuple(self.base.config.image_size))
    patch_resolution = property(lambda self: self._grid(self.img_size))
    num_prefix = property(lambda self: self.family.num_prefix(self.base))
    pool_from = num_prefix
    has_pos = True

    def __init__(self, model: nn.Module):
        super().__init__(model)
        embed = self.base.embeddings.forward
        self.embedding_inputs = tuple(signature(embed).parameters)

    @property
    def base(self) -> Any:
        """The model without classifier."""
        children: Iterable[Any] = self._modules.values()
        return next((x for x in children if find_family(x)), self)

    @property
    def layers(self) -> nn.ModuleList:
        """The layers."""
        part: Any = self.base
        for name in self.family.layers.split('.'):
            part = part._modules[name]  # this property hides the attribute
        return part

    @property
    def cls_token(self) -> Tensor:
        """The class token, (1, 1, C)."""
        return getattr(self.base.embeddings, self.family.cls).view(1, 1, -1)

    def delegates(self) -> list[nn.Module]:
        """See :class:`ReducedModel`."""
        attention = self.family.attention
        parts = [getattr(x, attention) for x in self.layers]
        parts += [self.base] * (self.base is not self)
        pool = self.base._modules.get('head')
        return [*self.layers, *parts, *filter(None, [pool])]

    def get_functions(self, layer: nn.Module) -> LayerFunctions:
        """Return the functions that run a layer."""
        return self.family.functions

    def _grid(self, size: Sequence[int]) -> tuple[int, int]:
        height, width = to_2tuple(self.base.config.patch_size)
        return size[0] // height, size[1] // width

    def embed(self, x: Tensor, **inputs) -> tuple[Tokens, tuple[int, int]]:
        """See :class:`Reducible`; the embedding gets ``inputs``, too."""
        hw, num_prefix = self._grid(x.shape[-2:]), self.num_prefix
        images = x.to(self.dtype)
        x = self.base.embeddings(images, **inputs)
        tokens = Tokens(
            x,
            num_prefix=num_prefix,
            num_patches=x.size(1) - num_prefix,
            rotary=self.family.rotary(self.base, images, self.reducer),
        )
        if self.cache is not None:
            tokens = self.cache.start(tokens)
        return tokens.with_features(
            self.family.pre_norm(self.base, tokens.features)
        ), hw

    def apply_final_norm(self, x: Tensor) -> Tensor:
        """See :class:`Reducible`."""
        return self.family.norm(self.base, x)

    def call(self, *args, **kwargs):
        """Run the forward pass of the original with fewer tokens.

        Raises:
            Error: If an input does not allow token reduction.
        """
        if not (self.reduces or self.has_cla or self.recorder is not None):
            return self.original.forward(self, *args, **kwargs)
        kwargs = dict(zip(self.inputs, args, strict=False), **kwargs)
        attentions = self.config.output_attentions
        refuse_set(
            dict(
                attention_mask=kwargs.get('attention_mask'),
                output_attentions=kwargs.get('output_attentions', attentions),
            ),
            'with token reduction, as the number of tokens differs between '
            'layers',
        )
        as_dict = kwargs.pop('return_dict', None)
        as_dict = self.config.return_dict if as_dict is None else as_dict
        if self.has_cla:
            output = self.classify(**kwargs)
        elif self.base is self:
            output = self.run_base(self, **kwargs)
        else:
            kwargs |= dict(return_dict=True, run=self.run_base)
            output = self.original.forward(self, **kwargs)
        if self.training and output.get('loss') is not None:
            output['loss'] = output['loss'] + self.auxiliary_loss()
        return output if as_dict else output.to_tuple()

    def run_base(
        self,
        base: Any,
        pixel_values: Tensor,
        output_hidden_states: bool | None = None,
        **inputs,
    ):
        """Run the model without classifier; ``inputs`` as in the original.

        Hidden states, if wanted, are the remaining tokens after each layer,
        without the final norm.
        """
        inputs = {
            name: value
            for name, value in inputs.items()
            if name in self.embedding_inputs and value is not None
        }
        tokens, hw = self.embed(pixel_values, **inputs)
        states = [tokens.features]
        tokens = self.run_layers(
            tokens, lambda i, x: states.append(x.features)
        )
        tokens = tokens.with_features(self.apply_final_norm(tokens.features))
        if self.training:
            self.losses = self.reducer.loss(tokens)
        if output_hidden_states is None:
            output_hidden_states = base.config.output_hidden_states
        x = self.format_tokens(tokens, hw)
        return self.as_output(
            x, self.pool(x, tokens), states if output_hidden_states else None
        )

    def remove_head(self) -> None:
        """Remove the modules after the layers; a CLA head replaces them."""
        super().remove_head()
        for name in self.family.norms:
            setattr(self.base, name, nn.Identity())

    def reset_classifier(
        self, num_classes: int, global_pool: str | None = None
    ) -> None:
        """Replace the classifiers by new ones; a CLA head stays one."""
        super().reset_classifier(num_classes, global_pool)
        self.num_classes = self.num_labels = num_classes
        self.config.num_labels = num_classes

    def save_pretrained(self, save_directory, **kwargs) -> None:
        """Save the original, without reducer; see Transformers.

        Raises:
            Error: If the classifier is a CLA head.
        """
        if self.has_cla:
            raise Error(
                'a CLA head is no part of Transformers; save the weights with '
                'torch.save(model.state_dict(), path)'
            )
        weights = kwargs.pop('state_dict', None) or self.state_dict()
        weights = {
            name: value
            for name, value in weights.items()
            if not name.startswith(self.may_be_new)
        }
        self.original.save_pretrained(
            self, save_directory, state_dict=weights, **kwargs
        )

    def gradient_checkpointing_enable(self, *args, **kwargs) -> None:
        """Recompute layers in the backward pass."""
        self.with_cp = True

    def gradient_checkpointing_disable(self) -> None:
        """Do not recompute layers in the backward pass."""
        self.with_cp = False

    def __reduce_ex__(self, protocol: int) -> tuple:
        # pickle cannot import a class that is made at run time
        return _new, (self.original,), self.__getstate__()


class WithTensors(nn.Module):
    """A model whose output is a tensor: scores, or pooled tokens."""

    def __init__(self, model: nn.Module):
        super().__init__()
        self.model = model

    def forward(self, images: Tensor) -> Tensor:
        """Map images (B, 3, H, W) to logits, (B, classes), or to (B, C)."""
        output = self.model(images, return_dict=True)
        names = 'logits', 'image_embeds', 'pooler_output', 'last_hidden_state'
        return next(output[name] for name in names if name in output)


def with_tensors(model: nn.Module) -> nn.Module:
    """Return a model that returns tensors, as exports need."""
    wrap = isinstance(model, ReducedTransformer)
    return WithTensors(model) if wrap else model


@cache
def reduced_transformer(model_class: Any) -> type[ReducedTransformer]:
    """Return the reduced class of a class of Transformers.

    It keeps the name and the signature of ``forward``: Transformers looks at
    both.
    """

    @wraps(model_class.forward)
    def forward(self, *args, **kwargs):
        return self.call(*args, **kwargs)

    _, *inputs = signature(model_class.forward).parameters
    names = dict(original=model_class, inputs=tuple(inputs), forward=forward)
    names['outputs'] = import_module('transformers.modeling_outputs')
    names['__module__'] = model_class.__module__
    return type(model_class.__name__, (ReducedTransformer, model_class), names)


def _new(model_class: type) -> ReducedTransformer:
    reduced = reduced_transformer(model_class)
    return reduced.__new__(reduced)
