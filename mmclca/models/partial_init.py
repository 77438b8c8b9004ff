# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from copy import deepcopy

from mmengine.logging import MMLogger
from torch import nn

from mmclca.checkpoints.loading import load_checkpoint
from mmclca.registry import WEIGHT_INITIALIZERS
from mmclca.utils.messages import integer


@WEIGHT_INITIALIZERS.register_module()
class PartialInit:
    """Start from some layers of a checkpoint; the others are new.

    ``init_cfg=dict(type='mmclca.PartialInit', checkpoint=..., first=6)`` of a
    classifier, in the place of ``load_from``. It acts where a training
    begins; a run that is resumed, and a test, load all weights as ever.

    Of a file whose network has more layers than the model, see ``depth`` of
    :class:`TokenReductionViT`; the layers that a file has not are new with
    ``first``. For the comparisons in section 4 of `A Closer Look at
    Self-Supervised Lightweight Vision Transformers
    <https://arxiv.org/abs/2205.14443>`_, and in section 2.2 of `Masked Image
    Residual Learning for Scaling Deeper Vision Transformers
    <https://arxiv.org/abs/2309.14136>`_.

    Args:
        checkpoint (str): Path or address of the weights.
        first (int, optional): Layers that are taken from it, with the
            embedding; 0: the embedding alone. Defaults to None.
        last (int, optional): In its place, layers that are new. Defaults to
            None.

    Raises:
        ValueError: If not one of both is given; where a training begins, if
            the backbone has no such number of layers.
    """

    def __init__(
        self,
        checkpoint: str,
        first: int | None = None,
        last: int | None = None,
    ):
        if (first is None) == (last is None):
            raise ValueError(f'first={first}, last={last}: set only one')
        self.checkpoint, self.first, self.last = checkpoint, first, last

    def __call__(self, module: nn.Module) -> None:
        """Initialize and load a classifier, in place."""
        for part in module.children():
            if hasattr(part, 'init_weights'):
                part.init_weights()  # before loading, which it would undo
        backbone = module.backbone
        new = range(self._count(len(backbone.layers)), len(backbone.layers))
        drawn = [deepcopy(backbone.layers[i].state_dict()) for i in new]
        known = backbone.may_be_new
        backbone.may_be_new = (*known, *(f'layers.{i}.' for i in new))
        load_checkpoint(module, self.checkpoint)
        backbone.may_be_new = known
        for i, weights in zip(new, drawn, strict=True):
            backbone.layers[i].load_state_dict(weights)
        MMLogger.get_current_instance().info(
            f'{self.checkpoint}: layers {[*new]} are randomly initialized'
        )

    def _count(self, total: int) -> int:
        """Count the layers that are taken."""
        name = 'first' if self.last is None else 'last'
        count = getattr(self, name)
        integer(least=0, most=total, **{name: count})
        return count if name == 'first' else total - count
