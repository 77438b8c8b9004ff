# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Masked autoencoder with a teacher, and a decoder that checks its sizes."""

from collections.abc import Sequence

from mmengine.model import ModuleList
from mmpretrain.models.necks import MAEPretrainDecoder
from mmpretrain.models.selfsup import MAE
from torch import Tensor

from mmclca.errors import Error
from mmclca.registry import MODELS
from mmclca.utils.messages import check_integer

from ..distillation.encoder_teacher import EncoderTeacher


def check_width(heads: int, **width: int) -> None:
    """Raise if a dimension is not divisible by the heads and by 4.

    Sine-cosine position embeddings need a multiple of 4. Pass the dimension
    as one keyword, its option name, such as ``decoder_embed_dim=512``.
    """
    check_integer(decoder_num_heads=heads, **width)
    ((name, channels),) = width.items()
    if channels % heads or channels % 4:
        raise Error(
            f'{name}={channels} is not divisible by decoder_num_heads={heads} '
            'and by 4; choose a multiple of both'
        )


@MODELS.register_module()
class CheckedMAEDecoder(MAEPretrainDecoder):
    """mmpretrain's ``MAEPretrainDecoder`` with checked sizes.

    The parent fails with the first batch if the heads do not fit.

    Args:
        decoder_embed_dim (int): Channels of the decoder. Defaults to 512.
        decoder_num_heads (int): Heads of its attention. Defaults to 16.
        **decoder: Other arguments of ``MAEPretrainDecoder``.

    Raises:
        Error: If the channels are not divisible by the heads and by 4.
    """

    def __init__(
        self,
        decoder_embed_dim: int = 512,
        decoder_num_heads: int = 16,
        **decoder,
    ):
        check_width(decoder_num_heads, decoder_embed_dim=decoder_embed_dim)
        super().__init__(
            decoder_embed_dim=decoder_embed_dim,
            decoder_num_heads=decoder_num_heads,
            **decoder,
        )


@MODELS.register_module()
class DistilledMAE(MAE):
    """mmpretrain's ``MAE`` that also learns from the layers of a teacher.

    `A Closer Look at Self-Supervised Lightweight Vision Transformers
    <https://arxiv.org/abs/2205.14443>`_, section 5: the attention of a small
    encoder is compared with that of a larger encoder, pre-trained in the same
    way. Both get the same visible patches. The teacher is not part of the
    parameters.

    Args:
        backbone (dict): Config of a :class:`SegmentedMAEViT`.
        neck (dict): Config of mmpretrain's ``MAEPretrainDecoder``.
        head (dict): Config of mmpretrain's ``MAEPretrainHead``.
        teacher (dict): ``backbone`` and ``checkpoint`` of an
            :class:`EncoderTeacher`.
        distill (Sequence[dict]): Configs of :class:`AttentionDistillation` and
            :class:`HiddenDistillation`.
        **mae: ``data_preprocessor``, ``pretrained`` and ``init_cfg`` for
            ``MAE``.

    Raises:
        Error: If the teacher or a loss does not fit the backbone; when
            training starts, if the teacher cannot be loaded or is a
            classifier.
    """

    def __init__(
        self,
        backbone: dict,
        neck: dict,
        head: dict,
        *,
        teacher: dict,
        distill: Sequence[dict],
        **mae,
    ):
        super().__init__(backbone, neck, head, **mae)
        self.teacher = EncoderTeacher(
            **teacher, loss=distill, student=self.backbone
        )
        self.distill = ModuleList(self.teacher.losses)

    def init_weights(self) -> None:
        """Initialize the parameters and check the teacher."""
        super().init_weights()
        self.teacher.prepare(self)

    def loss(self, inputs: Tensor, data_samples=None, **kwargs) -> dict:
        """Compute the reconstruction and distillation losses by name.

        Args:
            inputs (Tensor): Images (B, 3, H, W).
            data_samples (list[DataSample], optional): Not used.
            **kwargs: Not used.
        """
        seen = self.backbone.encode(inputs)
        pred = self.neck(seen.output, seen.ids_restore)
        loss = self.head.loss(pred, inputs, seen.mask)
        return dict(loss=loss) | self.teacher.teach(inputs, self, ours=seen)
