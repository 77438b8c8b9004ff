# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Classifiers with distillation, token reduction and checks of the head."""

from mmpretrain.models.classifiers import ImageClassifier
from mmpretrain.structures import DataSample
from torch import Tensor, nn

from mmclca.errors import Error
from mmclca.registry import MODELS
from mmclca.utils.messages import check_choice

from .backbones import Reducible
from .distillation import EncoderTeacher, Teacher
from .distillation.layers import LayerFeatures
from .heads import Head, check_head, has_class_loss
from .pretrained import use_safe_initializer
from .recording import recording_copy

# features of an image: last CLS token, input of the classifier
FEATURES = ('backbone', 'pre_logits')


def extract_feature(
    classifier: nn.Module, inputs: Tensor, feature: str
) -> Tensor:
    """Compute one feature per image.

    Args:
        classifier (nn.Module): Classifier of mmpretrain or mmclca.
        inputs (Tensor): Preprocessed images (B, 3, H, W).
        feature (str): One of ``FEATURES``, or 'neck'.

    Returns:
        Tensor: (B, C). If the backbone returns tokens (B, N, C), the CLS
        token.
    """
    outputs = classifier.extract_feat(inputs, stage=feature)
    last = outputs[-1] if isinstance(outputs, tuple) else outputs
    return last[:, 0] if last.dim() == 3 else last


@MODELS.register_module()
class DistilledClassifier(ImageClassifier):
    """mmpretrain's ``ImageClassifier`` with an optional teacher.

    Works with any backbone, for example ResMLP, PatchConvNet or a ResNet. Use
    :class:`TokenReductionClassifier` for token reduction.

    Args:
        backbone (dict): Backbone config.
        neck (dict, optional): Neck config. Defaults to None.
        head (dict, optional): Head config. Defaults to None.
        teacher (dict, optional): ``model``, ``checkpoint`` and ``loss`` of a
            frozen classifier, see :class:`Teacher`; or ``backbone``,
            ``checkpoint`` and ``loss`` of an encoder without head, see
            :class:`EncoderTeacher`. Defaults to None.
        **classifier: ``pretrained``, ``train_cfg`` (batch augmentations),
            ``data_preprocessor`` and ``init_cfg`` for ``ImageClassifier``.

    Raises:
        Error: If the loss of the head does not support a teacher; when
            training starts, if the teacher cannot be loaded or does not fit
            the student.
    """

    has_tokens = False

    def __init__(
        self,
        backbone: dict,
        neck: dict | None = None,
        head: dict | None = None,
        *,
        teacher: dict | None = None,
        **classifier,
    ):
        super().__init__(backbone, neck, head, **classifier)
        self.init_cfg = use_safe_initializer(self.init_cfg)
        self.teacher = self._build_teacher(teacher)

    def _build_teacher(self, teacher: dict | None) -> Teacher | None:
        if teacher is None:
            return None
        if 'backbone' in teacher:
            return self._build_encoder_teacher(teacher)
        if not has_class_loss(type(self.head)):
            raise Error(
                f'the loss of {type(self.head).__name__} does not support '
                'distillation; use LinearClsHead'
            )
        built = Teacher(**teacher)
        if built.compares_tokens and not self.has_tokens:
            raise Error(
                f'{type(self).__name__} has no tokens for a teacher; use '
                'TokenReductionClassifier, or LogitDistillation'
            )
        return built

    def _build_encoder_teacher(self, teacher: dict) -> EncoderTeacher:
        backbone = self.backbone
        if not self.has_tokens or backbone.reduces or backbone.cache:
            raise Error(
                'teacher: layer distillation needs a TokenReductionClassifier '
                'without reducer and cache'
            )
        built = EncoderTeacher(**teacher, student=backbone)
        self.distill = nn.ModuleList(built.losses)
        return built

    def init_weights(self) -> None:
        """Initialize the parameters and check the teacher."""
        super().init_weights()
        if self.teacher is not None:
            self.teacher.prepare(self)

    def forward_features(self, inputs: Tensor) -> tuple:
        """Return the head's input, and the final tokens or None."""
        return self.extract_feat(inputs), None

    def loss(self, inputs: Tensor, data_samples: list[DataSample]) -> dict:
        """Compute the losses of head and teacher by name.

        Args:
            inputs (Tensor): Images (B, 3, H, W).
            data_samples (list[DataSample]): Annotations.
        """
        feats, tokens = self.forward_features(inputs)
        return self._losses(inputs, data_samples, feats, tokens)

    def _losses(self, inputs, data_samples, feats, tokens) -> dict:
        if self.teacher is None or self.teacher.compares_layers:
            return self.head.loss(feats, data_samples)
        # run the head once, as it may update batch statistics
        if isinstance(self.head, Head):
            scores, dist_scores = self.head.token_scores(feats)
        else:
            scores, dist_scores = self.head(feats), None
        losses = self.head._get_loss(scores, data_samples)
        return losses | self.teacher.teach(
            inputs,
            self,
            scores=scores,
            dist_scores=dist_scores,
            base_loss=losses['loss'],
            tokens=tokens,
        )


@MODELS.register_module()
class TokenReductionClassifier(DistilledClassifier):
    """Image classifier with a :class:`Reducible` backbone.

    It adds the auxiliary losses of the reducer and the teacher, and checks
    that head and backbone fit.

    Args:
        backbone (dict): Backbone config.
        neck (dict, optional): Neck config. Defaults to None.
        head (dict, optional): Head config. Defaults to None.
        teacher (dict, optional): See :class:`DistilledClassifier`.
        **classifier: ``pretrained``, ``train_cfg``, ``data_preprocessor`` and
            ``init_cfg`` for ``ImageClassifier``.

    Raises:
        Error: If the backbone is not a :class:`Reducible`; if the head
            does not fit its channels, output layers, final norm or
            distillation token; if a :class:`PerClassHead` lacks a neck; at the
            first training step, if the reducer needs a teacher and has none.
            See also :class:`DistilledClassifier`.
    """

    has_tokens = True

    def __init__(
        self,
        backbone: dict,
        neck: dict | None = None,
        head: dict | None = None,
        *,
        teacher: dict | None = None,
        **classifier,
    ):
        super().__init__(backbone, neck, head, teacher=teacher, **classifier)
        if not isinstance(self.backbone, Reducible):
            raise Error(
                f'{type(self.backbone).__name__} is not a backbone for '
                "TokenReductionClassifier; use type='ImageClassifier'"
            )
        check_head(self.backbone, self.head, self.with_neck)

    def extract_feat(self, inputs: Tensor, stage: str = 'neck'):
        """See ``ImageClassifier.extract_feat``."""
        check_choice(('backbone', 'neck', 'pre_logits'), stage=stage)
        if stage == 'backbone':
            return self.backbone.forward_tokens(inputs)[0]
        feats, _ = self.forward_features(inputs)
        return self.head.pre_logits(feats) if stage == 'pre_logits' else feats

    def forward_features(self, inputs: Tensor) -> tuple:
        """See :class:`DistilledClassifier`."""
        feats, tokens = self.backbone.forward_tokens(inputs)
        return self.neck(feats) if self.with_neck else feats, tokens

    def loss(self, inputs: Tensor, data_samples: list[DataSample]) -> dict:
        """Compute the losses of head, reducer and teacher by name.

        Args:
            inputs (Tensor): Images (B, 3, H, W).
            data_samples (list[DataSample]): Annotations.
        """
        self._check_teacher()
        teacher = self.teacher
        if teacher is None or not teacher.compares_layers:
            feats, tokens = self.forward_features(inputs)
            losses = self._losses(inputs, data_samples, feats, tokens)
        else:
            model = recording_copy(self)
            feats, tokens = model.forward_features(inputs)
            losses = self._losses(inputs, data_samples, feats, tokens)
            layers = LayerFeatures.from_recording(
                model.backbone, tokens.features
            )
            losses |= teacher.teach(inputs, self, ours=layers)
        return losses | self.backbone.reducer.loss(tokens)

    def _check_teacher(self) -> None:
        reducer, teacher = self.backbone.reducer, self.teacher
        has_tokens = teacher is not None and teacher.compares_tokens
        if reducer.needs_teacher and not has_tokens:
            raise Error(
                f'{type(reducer).__name__} needs the tokens of a teacher; add '
                'teacher=dict(model=..., checkpoint=..., '
                "loss=dict(type='mmclca.TokenDistillation'))"
            )
