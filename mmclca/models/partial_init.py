# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from typing import Any

from mmengine.logging import MMLogger

from mmclca.checkpoints.load import adapt, fill
from mmclca.errors import Error
from mmclca.registry import WEIGHT_INITIALIZERS
from mmclca.utils.messages import check_integer


@WEIGHT_INITIALIZERS.register_module()
class PartialInit:
    """Initialize some layers from a checkpoint and the others randomly.

    Set ``init_cfg=dict(type='mmclca.PartialInit', checkpoint=..., first=6)``
    in the classifier instead of ``load_from``. It applies to a new training
    only; a resumed run or a test loads all weights as usual.

    For checkpoints with more layers than the model, see ``depth`` in
    :class:`TokenReductionViT`. With ``first``, layers missing in the
    checkpoint are randomly initialized. Used for section 4 of `A Closer Look
    at Self-Supervised Lightweight Vision Transformers
    <https://arxiv.org/abs/2205.14443>`_ and section 2.2 of `Masked Image
    Residual Learning for Scaling Deeper Vision Transformers
    <https://arxiv.org/abs/2309.14136>`_.

    Args:
        checkpoint (str): Path or URL of the weights.
        first (int, optional): Number of layers to load, in addition to the
            embedding; 0 loads only the embedding. Defaults to None.
        last (int, optional): Alternative to ``first``: number of layers to
            initialize randomly. Defaults to None.

    Raises:
        Error: Unless exactly one number is given; at the start of a
            training, if the backbone has fewer layers.
    """

    def __init__(
        self,
        checkpoint: str,
        first: int | None = None,
        last: int | None = None,
    ):
        if (first is None) == (last is None):
            raise Error(f'first={first}, last={last}: set only one')
        self.checkpoint, self.first, self.last = checkpoint, first, last

    def __call__(self, module: Any) -> None:
        """Initialize a classifier and load the checkpoint, in place."""
        for part in module.children():
            if hasattr(part, 'init_weights'):
                part.init_weights()  # would overwrite loaded weights
        backbone = module.backbone
        new = range(self._count(len(backbone.layers)), len(backbone.layers))
        adapted = adapt(module, self.checkpoint)
        layers = tuple(f'backbone.layers.{i}.' for i in new)
        for name in [x for x in adapted.weights if x.startswith(layers)]:
            del adapted.weights[name]
        for name, value in module.state_dict().items():
            if name.startswith(layers):
                adapted.weights[name] = value
                adapted.report.new.append(name)
        fill(module, adapted, strict=False)
        MMLogger.get_current_instance().info(
            f'{self.checkpoint}: layers {[*new]} are randomly initialized'
        )

    def _count(self, total: int) -> int:
        """Return the number of layers to load."""
        if self.last is not None:
            check_integer(0, total, last=self.last)
            return total - self.last
        first = self.first or 0
        check_integer(0, total, first=first)
        return first
