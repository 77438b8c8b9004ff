# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""The part of a model of Transformers after its layers."""

from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

from torch import Tensor, nn

from mmclca.errors import Error

from ..reduction.tokens import Tokens
from .calls import call
from .transformers_families import TransformersFamily, weighted_pool

CLASSIFIERS = ('classifier', 'cls_classifier', 'distillation_classifier')


def refuse_set(inputs: dict[str, object], why: str) -> None:
    """Raise an Error if an input is set."""
    for name, value in inputs.items():
        if value is not None and value is not False:
            raise Error(f'{name}= is not supported {why}')


class TransformersHead(nn.Module):
    """Mixin: outputs of Transformers, and methods as in timm."""

    # set by ReducedTransformer and the class of Transformers
    base: Any
    config: Any
    family: TransformersFamily
    loss_function: Callable
    original: Any
    outputs: ModuleType  # transformers.modeling_outputs
    pool_bias: Callable[[Tokens], Tensor]
    _features: Callable[[Tensor], Any]
    _match: Callable[[nn.Module], nn.Module]

    @property
    def classifiers(self) -> dict[str, nn.Module]:
        """Classifiers by name: none, one or two."""
        parts = self._modules
        return {name: parts[name] for name in CLASSIFIERS if name in parts}

    def pool(self, x: Tensor, tokens: Tokens) -> Tensor | None:
        """Pool normalized tokens (B, N, C) as the original.

        Token sizes and padding of ``tokens`` bias attention pooling.
        """
        head = self.base._modules.get('head')
        if head is None or tokens.weight is None:
            return self.family.pool(self.base, x)
        bias = self.pool_bias(tokens)
        return call(head, x, lambda head, x: weighted_pool(head, x, bias))[0]

    def as_output(
        self, x: Tensor, pooled: Tensor | None, states: Sequence | None
    ):
        """Return the output of a model without classifier."""
        return self.outputs.BaseModelOutputWithPooling(
            last_hidden_state=x,
            pooler_output=pooled,
            hidden_states=states and tuple(states),
        )

    def classify(self, pixel_values: Tensor, labels=None, **inputs):
        """Return the output of a model with a CLA head.

        Args:
            pixel_values (Tensor): Images (B, 3, H, W).
            labels (Tensor, optional): Classes (B,), for the loss.
            **inputs: Further inputs, none of which may be set.
        """
        refuse_set(inputs, 'with clca=True')
        logits, loss = self.forward_head(self._features(pixel_values)[0]), None
        if labels is not None:
            loss = self.loss_function(labels, logits, self.config)
        return self.outputs.ImageClassifierOutput(loss=loss, logits=logits)

    def forward_head(self, x, pre_logits: bool = False) -> Tensor | None:
        """Map the output of ``forward_features`` to class scores.

        Args:
            x (Tensor): Normalized tokens (B, N, C).
            pre_logits (bool): Whether to return the input of the classifier.
        """
        pooled = self.family.pool(self.base, x)
        if self.base is self or (pre_logits and not self.classifiers):
            return pooled
        result = self.as_output(x, pooled, None)

        def run(base, *args, **kwargs):
            return result

        inputs = []
        classifier = self.get_classifier()
        hook = classifier.register_forward_pre_hook(
            lambda module, args: inputs.append(args[0])
        )
        try:
            output = self.original.forward(
                self, None, return_dict=True, run=run
            )
        finally:
            hook.remove()
        return inputs[0] if pre_logits else output[0]

    def get_classifier(self) -> nn.Module:
        """Return the first classifier; see timm."""
        return next(iter(self.classifiers.values()), nn.Identity())

    def reset_classifier(
        self, num_classes: int, global_pool: str | None = None
    ) -> None:
        """Replace the classifiers by new ones."""
        classifiers: dict[str, Any] = self.classifiers
        if not any(isinstance(x, nn.Linear) for x in classifiers.values()):
            raise Error(
                f'{type(self).__name__} has no classifier to replace; build '
                'a model for image classification, with num_labels'
            )
        for name, old in classifiers.items():
            new = nn.Linear(old.in_features, num_classes)
            setattr(self, name, self._match(new))

    def remove_head(self) -> None:
        """Remove the classifiers."""
        if not self.classifiers:
            raise Error(
                f'clca=True needs a classifier, but {type(self).__name__} has '
                'none'
            )
        for name in self.classifiers:
            setattr(self, name, nn.Identity())

    def set_grad_checkpointing(self, enable: bool = True) -> None:
        """Do nothing; the loop over the layers does it."""

    def no_weight_decay(self) -> set[str]:
        """Names of parameters without weight decay."""
        marks = 'token', 'position', 'class_embedding', 'probe'
        names = [name for name, _ in self.named_parameters()]
        return {x for x in names if any(mark in x for mark in marks)}

    def group_matcher(self, coarse: bool = False) -> dict:
        """Patterns of the parameters of each layer."""
        names = {id(part): name for name, part in self.named_modules()}
        base = names[id(self.base)]
        base = f'^{base}.' if base else '^'
        layers = rf'{base}{self.family.layers}\.(\d+)'
        last = rf'{base}(?:layernorm|post_layernorm|head)'
        stem = rf'{base}(?:embeddings|pre_layrnorm)'
        return dict(stem=stem, blocks=[(layers, None), (last, (99999,))])
