# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""What a student learns from the layers of a teacher: attention and tokens.

Shapes: B images, N tokens that both see, H_s and H_t heads and D_s and D_t
channels of student and teacher.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from mmclca.registry import MODELS
from mmclca.utils.messages import integer, number

from ..recording import recording_copy
from ..reduction.attention import logits_of, project_qkv


@dataclass
class LayerFeatures:
    """Hold what a vision transformer makes of images, layer by layer.

    Attention stays fused: what is asked for is computed anew.

    Args:
        backbone (nn.Module): It has ``layers`` and ``normalize``.
        inputs (list[Tensor]): Tokens that enter each layer, (B, N, C).
        output (Tensor): Those that leave the last one, normalized where the
            backbone does that.
        ids_shuffle (Tensor, optional): Order of the patches of each image,
            (B, P), of which the tokens are the first. Defaults to None, they
            are all.
    """

    backbone: nn.Module
    inputs: list[Tensor]
    output: Tensor
    ids_shuffle: Tensor | None = None

    @classmethod
    def recorded(cls, backbone: nn.Module, output: Tensor) -> 'LayerFeatures':
        """Collect the features that a ``recording_copy`` recorded."""
        seen = backbone.recorder.layers
        return cls(backbone, [layer.entered.x for layer in seen], output)

    def hidden(self, place: int) -> Tensor:
        """Return the tokens that the attention of a layer reads, from 0; of
        the place after the last layer those that leave it."""
        if place == len(self.backbone.layers):
            return self.output
        layer = self.backbone.layers[place]
        return self.backbone.normalize(layer, self.inputs[place])

    def queries_and_keys(self, layer: int) -> tuple[Tensor, Tensor]:
        """Compute those of a layer, counted from 1, (B, H, N, C / H)."""
        attn = self.backbone.layers[layer - 1].attn
        attended = project_qkv(attn, self.hidden(layer - 1))
        return attended.q, attended.k


def follow(model: nn.Module, images: Tensor) -> LayerFeatures:
    """Run a classifier on images and record what enters its layers."""
    backbone = recording_copy(model).backbone
    _, tokens = backbone.forward_tokens(images)
    return LayerFeatures.recorded(backbone, tokens.x)


def attention_distillation(
    student_q: Tensor,
    student_k: Tensor,
    teacher_q: Tensor,
    teacher_k: Tensor,
    adapter: Tensor | None = None,
) -> Tensor:
    """Compare the attention of a student and a teacher in one layer.

    The mean squared difference of the logits before the softmax, each head
    of the teacher with a linear mix of the student's. `A Closer Look at
    Self-Supervised Lightweight Vision Transformers
    <https://arxiv.org/abs/2205.14443>`_, section 5, equation 3.

    Args:
        student_q (Tensor): Queries (B, H_s, N, D).
        student_k (Tensor): Keys, likewise.
        teacher_q (Tensor): Queries (B, H_t, N, D), of any D.
        teacher_k (Tensor): Keys, likewise.
        adapter (Tensor, optional): The mix, (H_t, H_s). Defaults to None,
            head by head.
    """
    pairs = (student_q, student_k), (teacher_q, teacher_k)
    ours, theirs = (logits_of(q, k) for q, k in pairs)
    if adapter is not None:
        ours = torch.einsum('ts,bsnm->btnm', adapter, ours)
    return F.mse_loss(ours, theirs)


class LayerDistillation(nn.Module):
    """Base of losses that compare layers of equal number.

    A subclass has ``size_of`` a backbone, what its adapters map, ``build``
    of an adapter from one size to another, and ``compare`` of a layer.

    Args:
        layers (Sequence[int]): Which.
        adapter (bool): Whether what the student has is mapped to the
            teacher's size by a linear map a layer, without a bias, which is
            trained with the student, for equal sizes too. Defaults to True.
        weight (float): Weight of the loss. Defaults to 1.

    Raises:
        ValueError: If there is no layer, one twice or one that is no number
            of a layer, or the weight is negative; see also :meth:`fit`.
    """

    compares_tokens = False
    first = 1  # the lowest number of a layer
    measured = ''  # what must be equal without adapters

    def __init__(
        self, layers: Sequence[int], adapter: bool = True, weight: float = 1.0
    ):
        super().__init__()
        number(weight=weight)
        is_list = isinstance(layers, Sequence) and len(layers) > 0
        if not is_list or len({*layers}) < len(layers):
            raise ValueError(f'layers={layers!r} must list different layers')
        for layer in layers:
            integer(least=self.first, layer=layer)
        self.layers, self.adapter = tuple(layers), adapter
        self.weight = weight
        self.adapters = nn.ModuleDict()

    def fit(self, student: nn.Module, teacher: nn.Module) -> None:
        """Build the adapters between two backbones.

        Raises:
            ValueError: If a backbone lacks one of the layers, or their sizes
                differ without adapters.
        """
        most = min(len(student.layers), len(teacher.layers))
        for layer in self.layers:
            integer(self.first, most, layer=layer)
        ours, theirs = self.size_of(student), self.size_of(teacher)
        if self.adapter:
            for layer in self.layers:
                self.adapters[str(layer)] = self.build(ours, theirs)
        elif ours != theirs:
            raise ValueError(
                f'adapter=False: the student has {ours} {self.measured}, the '
                f'teacher {theirs}; set adapter=True'
            )

    def forward(
        self, ours: LayerFeatures, theirs: LayerFeatures
    ) -> dict[str, Tensor]:
        """Add up the losses of all layers, by one name."""
        found = [self.compare(one, ours, theirs) for one in self.layers]
        kind = type(self).__name__.removesuffix('Distillation').lower()
        name = '_'.join(map(str, ('loss_distill', kind, *self.layers)))
        return {name: self.weight * sum(found)}


@MODELS.register_module()
class AttentionDistillation(LayerDistillation):
    """Difference of the attention in some layers; see
    :func:`attention_distillation`.

    Args:
        layers (Sequence[int]): Numbers of layers, from 1; the losses are
            added. The paper takes the last one alone.
        adapter (bool): Whether each head of the teacher is compared with a
            learned mix of the student's, a 1 x 1 convolution over heads.
            Defaults to True; otherwise there must be equally many.
        weight (float): Weight of the loss. Defaults to 1.

    Raises:
        ValueError: See :class:`LayerDistillation`.
    """

    measured = 'heads'

    def size_of(self, backbone: nn.Module) -> int:
        return backbone.layers[0].attn.num_heads

    def build(self, ours: int, theirs: int) -> nn.Module:
        return nn.Conv2d(ours, theirs, 1, bias=False)

    def compare(
        self, layer: int, ours: LayerFeatures, theirs: LayerFeatures
    ) -> Tensor:
        pairs = (one.queries_and_keys(layer) for one in (ours, theirs))
        adapter = None
        if self.adapter:
            adapter = self.adapters[str(layer)].weight.flatten(1)
        return attention_distillation(*next(pairs), *next(pairs), adapter)


@MODELS.register_module()
class HiddenDistillation(LayerDistillation):
    """Difference of the tokens, CLS among them, that layers read.

    The mean squared difference. An option of the public code of `A Closer
    Look at Self-Supervised Lightweight Vision Transformers
    <https://arxiv.org/abs/2205.14443>`_.

    Args:
        layers (Sequence[int]): Layers from 0, whose first norm gives the
            tokens; the number of layers stands for what leaves the last
            one, after the final norm. The losses are added.
        adapter (bool): Whether the student's tokens are mapped by a learned
            linear map. Defaults to True; otherwise widths must be equal.
        weight (float): Weight of the loss. Defaults to 1.

    Raises:
        ValueError: See :class:`LayerDistillation`.
    """

    first = 0
    measured = 'channels'

    def size_of(self, backbone: nn.Module) -> int:
        return backbone.embed_dims

    def build(self, ours: int, theirs: int) -> nn.Module:
        return nn.Linear(ours, theirs, bias=False)

    def compare(
        self, layer: int, ours: LayerFeatures, theirs: LayerFeatures
    ) -> Tensor:
        x = ours.hidden(layer)
        x = self.adapters[str(layer)](x) if self.adapter else x
        return F.mse_loss(x, theirs.hidden(layer))
