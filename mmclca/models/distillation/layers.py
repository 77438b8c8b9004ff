# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Distillation losses on teacher layers: attention and tokens.

Shapes: B images, N tokens visible to both networks, H_s and H_t heads and D_s
and D_t channels of student and teacher.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from mmclca.errors import Error
from mmclca.registry import MODELS
from mmclca.utils.messages import check_integer, check_number

from ..recording import recording_copy
from ..reduction.attention import attention_logits, project_qkv


@dataclass
class LayerFeatures:
    """Inputs of all layers of a vision transformer for a batch.

    Attention stays fused; queries and keys are recomputed on demand.

    Args:
        backbone (nn.Module): Backbone with ``layers`` and ``normalize``.
        inputs (list[Tensor]): Input tokens of each layer, (B, N, C).
        output (Tensor): Output of the last layer, after the final norm if the
            backbone has one.
        ids_shuffle (Tensor, optional): Patch order per image, (B, P); the
            tokens are the first patches. Defaults to None, all patches are
            tokens.
    """

    backbone: Any
    inputs: list[Tensor]
    output: Tensor
    ids_shuffle: Any = None

    @classmethod
    def from_recording(cls, backbone: Any, output: Tensor) -> 'LayerFeatures':
        """Collect the features that a ``recording_copy`` recorded."""
        seen = backbone.recorder.layers
        return cls(
            backbone, [layer.entered.features for layer in seen], output
        )

    def hidden(self, depth: int) -> Tensor:
        """Return the normalized input of the layer with this index, from 0.

        If it equals the number of layers, return ``output``.
        """
        if depth == len(self.backbone.all_layers):
            return self.output
        layer = self.backbone.all_layers[depth]
        return self.backbone.normalize(layer, self.inputs[depth])

    def queries_and_keys(self, layer: int) -> tuple[Tensor, Tensor]:
        """Compute queries and keys (B, H, N, C / H) of a layer, from 1."""
        attn = self.backbone.all_layers[layer - 1].attn
        attended = project_qkv(attn, self.hidden(layer - 1))
        return attended.q, attended.k


def record_layers(model: Any, images: Tensor) -> LayerFeatures:
    """Run a classifier on images and record the inputs of its layers."""
    backbone = recording_copy(model).backbone
    _, tokens = backbone.forward_tokens(images)
    return LayerFeatures.from_recording(backbone, tokens.features)


def attention_distillation(
    student_q: Tensor,
    student_k: Tensor,
    teacher_q: Tensor,
    teacher_k: Tensor,
    adapter: Tensor | None = None,
) -> Tensor:
    """Mean squared difference of attention logits in one layer.

    Logits are compared before the softmax, each teacher head with a linear mix
    of student heads. `A Closer Look at Self-Supervised Lightweight Vision
    Transformers <https://arxiv.org/abs/2205.14443>`_, section 5, equation 3.

    Args:
        student_q (Tensor): Queries (B, H_s, N, D).
        student_k (Tensor): Keys (B, H_s, N, D).
        teacher_q (Tensor): Queries (B, H_t, N, D), for any D.
        teacher_k (Tensor): Keys (B, H_t, N, D).
        adapter (Tensor, optional): Weights of the mix, (H_t, H_s). Defaults to
            None: heads are compared one by one.
    """
    pairs = (student_q, student_k), (teacher_q, teacher_k)
    ours, theirs = (attention_logits(q, k) for q, k in pairs)
    if adapter is not None:
        ours = torch.einsum('ts,bsnm->btnm', adapter, ours)
    return F.mse_loss(ours, theirs)


class LayerDistillation(nn.Module):
    """Base class for losses between layers with the same index.

    A subclass defines ``get_size`` (a backbone's dimension that must match),
    ``build`` (an adapter between two sizes) and ``compare`` (the loss of one
    layer).

    Args:
        layers (Sequence[int]): Layer indices.
        adapter (bool): Whether a linear map per layer, without bias, adapts
            the student to the teacher's size; it is trained with the student,
            even for equal sizes. Defaults to True.
        weight (float): Loss weight. Defaults to 1.

    Raises:
        Error: If the layers are empty, repeated or invalid, or the weight
            is negative; see also :meth:`fit`.
    """

    compares_tokens = False
    first = 1  # lowest layer index
    measured = ''  # name of the dimension that must match

    def __init__(
        self, layers: Sequence[int], adapter: bool = True, weight: float = 1.0
    ):
        super().__init__()
        check_number(weight=weight)
        is_list = isinstance(layers, Sequence) and len(layers) > 0
        if not is_list or len({*layers}) < len(layers):
            raise Error(f'layers={layers!r} must list different layers')
        for layer in layers:
            check_integer(minimum=self.first, layer=layer)
        self.layers, self.adapter = tuple(layers), adapter
        self.weight = weight
        self.adapters = nn.ModuleDict()

    def fit(self, student: Any, teacher: Any) -> None:
        """Build the adapters between two backbones.

        Raises:
            Error: If a backbone lacks one of the layers, or their sizes
                differ without adapters.
        """
        min_depth = min(len(student.all_layers), len(teacher.all_layers))
        for layer in self.layers:
            check_integer(self.first, min_depth, layer=layer)
        ours, theirs = self.get_size(student), self.get_size(teacher)
        if self.adapter:
            for layer in self.layers:
                self.adapters[str(layer)] = self.build(ours, theirs)
        elif ours != theirs:
            raise Error(
                f'adapter=False: the student has {ours} {self.measured}, the '
                f'teacher {theirs}; set adapter=True'
            )

    def forward(
        self, ours: LayerFeatures, theirs: LayerFeatures
    ) -> dict[str, Tensor]:
        """Return the weighted sum of the layer losses, under one name."""
        distances = [
            self.compare(layer, ours, theirs) for layer in self.layers
        ]
        compared = type(self).__name__.removesuffix('Distillation').lower()
        name = '_'.join(map(str, ('loss_distill', compared, *self.layers)))
        return {name: self.weight * sum(distances)}


@MODELS.register_module()
class AttentionDistillation(LayerDistillation):
    """Difference of attention logits, see :func:`attention_distillation`.

    Args:
        layers (Sequence[int]): Layer indices, from 1; the losses are added.
            The paper uses only the last layer.
        adapter (bool): Whether each teacher head is compared with a learned
            mix of student heads, a 1 x 1 convolution over heads. Defaults to
            True; otherwise the numbers of heads must be equal.
        weight (float): Loss weight. Defaults to 1.

    Raises:
        Error: See :class:`LayerDistillation`.
    """

    measured = 'heads'

    def get_size(self, backbone: Any) -> int:
        return backbone.layers[0].attn.num_heads

    def build(self, ours: int, theirs: int) -> nn.Module:
        return nn.Conv2d(ours, theirs, 1, bias=False)

    def compare(
        self, layer: int, ours: LayerFeatures, theirs: LayerFeatures
    ) -> Tensor:
        student_q, student_k = ours.queries_and_keys(layer)
        teacher_q, teacher_k = theirs.queries_and_keys(layer)
        adapter = None
        if self.adapter:
            adapter = self.adapters[str(layer)].weight.flatten(1)
        return attention_distillation(
            student_q, student_k, teacher_q, teacher_k, adapter
        )


@MODELS.register_module()
class HiddenDistillation(LayerDistillation):
    """Mean squared difference of the input tokens of layers, CLS included.

    An option of the public code of `A Closer Look at Self-Supervised
    Lightweight Vision Transformers <https://arxiv.org/abs/2205.14443>`_.

    Args:
        layers (Sequence[int]): Layer indices, from 0, compared after the first
            norm; the number of layers stands for the last output, after the
            final norm. The losses are added.
        adapter (bool): Whether a learned linear map adapts the student's
            tokens. Defaults to True; otherwise the channels must be equal.
        weight (float): Loss weight. Defaults to 1.

    Raises:
        Error: See :class:`LayerDistillation`.
    """

    first = 0
    measured = 'channels'

    def get_size(self, backbone: Any) -> int:
        return backbone.embed_dims

    def build(self, ours: int, theirs: int) -> nn.Module:
        return nn.Linear(ours, theirs, bias=False)

    def compare(
        self, layer: int, ours: LayerFeatures, theirs: LayerFeatures
    ) -> Tensor:
        x = ours.hidden(layer)
        x = self.adapters[str(layer)](x) if self.adapter else x
        return F.mse_loss(x, theirs.hidden(layer))
