# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""A frozen encoder without head as a teacher of layers."""

from collections.abc import Sequence

import torch
from mmpretrain.apis import ModelHub
from mmpretrain.models.backbones.base_backbone import BaseBackbone
from torch import Tensor, nn

from mmclca.building import config_errors
from mmclca.errors import Error
from mmclca.registry import MODELS
from mmclca.utils.messages import check_choice
from mmclca.utils.meta_device import on_meta_device

from .layers import LayerFeatures, record_layers
from .teacher import Teacher

MASKED, WHOLE = 'mmclca.SegmentedMAEViT', 'mmclca.TokenReductionViT'
ENCODERS = ('MAEViT', 'VisionTransformer', MASKED, WHOLE)
# settings of the encoder that only matter in its own training
TRAINING_ONLY = ('init_cfg', 'mask_ratio', 'num_segments', 'with_cp')


class EncoderTeacher(Teacher):
    """:class:`Teacher` that is a pre-trained encoder without a head.

    It gets the student's images unchanged, and the patches visible to the
    student: all of them, or the unmasked ones.

    Args:
        backbone (str | dict): Config of a plain vision transformer or of the
            encoder of a masked autoencoder, or the name of an mmpretrain
            config with such a backbone. The image size is the student's.
        checkpoint (str): Path or URL of the trained weights.
        loss (dict | Sequence[dict]): One or more configs of
            :class:`AttentionDistillation` or :class:`HiddenDistillation`.
        student (BaseBackbone): Student backbone.

    Raises:
        Error: If the encoder is not supported, its patch size differs
            from the student's, or a loss does not fit both backbones.
    """

    compares_layers = True

    def __init__(
        self,
        backbone: str | dict,
        checkpoint: str,
        loss: dict | Sequence[dict],
        student: BaseBackbone,
    ):
        super().__init__(None, checkpoint, loss)
        encoder = _encoder_config(backbone, student)
        self.config = dict(type='ImageClassifier', backbone=encoder)
        with on_meta_device():
            built = MODELS.build(encoder)
        ours, theirs = tuple(student.stride), tuple(built.stride)
        if ours != theirs:
            raise Error(
                f"teacher: patch size {theirs} differs from the student's "
                f'{ours}; use a teacher with the same patch_size'
            )
        for layer_loss in self.losses:
            layer_loss.fit(student, built)

    def match_names(self, names: Sequence[str] | None) -> None:
        """Do nothing, as classes do not matter to an encoder."""

    def _build(self, config: dict, student: nn.Module) -> nn.Module:
        with config_errors():
            return MODELS.build(config)

    def _check_output(self, *_) -> None:
        """Do nothing, as the encoder is built for the student's image size."""

    def _losses(
        self, inputs: Tensor, student, ours: LayerFeatures
    ) -> list[dict]:
        """Compare the student layers, ``ours``, with the encoder's."""
        with torch.no_grad():
            theirs = self.encode(inputs, ours.ids_shuffle)
        return [loss(ours, theirs) for loss in student.distill]

    def encode(
        self, inputs: Tensor, ids_shuffle: Tensor | None
    ) -> LayerFeatures:
        """Run the encoder on the patches visible to the student."""
        model = self.match_images(inputs)
        if ids_shuffle is None:
            return record_layers(model, inputs)
        return model.backbone.encode(inputs, ids_shuffle)


def _encoder_config(backbone: str | dict, student: BaseBackbone) -> dict:
    """Build the encoder config for the student's inputs."""
    if isinstance(backbone, str):
        backbone = ModelHub.get(backbone).config.model.backbone
    encoder = backbone.get('type') if isinstance(backbone, dict) else backbone
    check_choice(ENCODERS, **{'type of the teacher': encoder})
    items = backbone.items()  # type: ignore[union-attr]  # a dict by now
    settings = {k: v for k, v in items if k not in TRAINING_ONLY}
    settings.update(type=WHOLE, img_size=student.img_size)
    if hasattr(student, 'mask_ratio'):
        settings.update(type=MASKED, mask_ratio=student.mask_ratio)
    return settings
