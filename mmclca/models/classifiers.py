# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""The classifier, and the checks that its head fits its backbone."""

from mmpretrain.models.classifiers import ImageClassifier
from mmpretrain.structures import DataSample
from torch import Tensor, nn

from mmclca.checkpoints.loading import fill_exactly
from mmclca.registry import MODELS
from mmclca.utils.messages import one_of

from .backbones import Reducible
from .distillation import EncoderTeacher, Teacher
from .distillation.layers import LayerFeatures
from .heads import Head, check_head, has_class_loss
from .recording import recording_copy

STAGES = ('backbone', 'pre_logits')


def feature_of(classifier: nn.Module, inputs: Tensor, stage: str) -> Tensor:
    """Compute one feature per image.

    Args:
        classifier (nn.Module): mmpretrain's or ours.
        inputs (Tensor): Preprocessed images (B, 3, H, W).
        stage (str): One of ``STAGES``.

    Returns:
        Tensor: (B, C). Of tokens (B, N, C), as a backbone with a
        distillation token gives them, the first: CLS.
    """
    found = classifier.extract_feat(inputs, stage=stage)
    feature = found[-1] if isinstance(found, tuple) else found
    return feature[:, 0] if feature.dim() == 3 else feature


def _load_around_backbone(classifier, weights, prefix, metadata, *_) -> None:
    """Load hook of a classifier: all but the backbone may be new."""
    if 'source' not in metadata:
        return
    own = classifier.state_dict()
    own = {k: v for k, v in own.items() if not k.startswith('backbone.')}
    inner = [key for key in weights if key.startswith(f'{prefix}backbone.')]
    backbone = {key: weights.pop(key) for key in inner}
    fill_exactly(own, weights, prefix, metadata['source'].begin())
    weights.update(backbone)


@MODELS.register_module()
class DistilledClassifier(ImageClassifier):
    """mmpretrain's ``ImageClassifier`` that may learn from a teacher.

    For backbones of any kind, as ResMLP, PatchConvNet or a ResNet;
    :class:`TokenReductionClassifier` has a teacher in the same way.

    Args:
        backbone (dict): Config of the backbone.
        neck (dict, optional): Config of a neck. Defaults to None.
        head (dict, optional): Config of the head. Defaults to None.
        teacher (dict, optional): ``model``, ``checkpoint`` and ``loss`` of a
            frozen classifier to distill from, see :class:`Teacher`; or with
            ``backbone`` in place of ``model`` an encoder without a head, see
            :class:`EncoderTeacher`. Defaults to None.
        **kwargs: ``pretrained``, ``train_cfg`` (batch augmentations),
            ``data_preprocessor`` and ``init_cfg`` of ``ImageClassifier``.

    Raises:
        ValueError: If the teacher has no place in the loss of the head; where
            a training begins, if the teacher cannot be had or does not fit.
    """

    has_tokens = False

    def __init__(
        self,
        backbone: dict,
        neck: dict | None = None,
        head: dict | None = None,
        *,
        teacher: dict | None = None,
        **kwargs,
    ):
        super().__init__(backbone, neck, head, **kwargs)
        self.teacher = self._build_teacher(teacher)

    def _build_teacher(self, teacher: dict | None) -> Teacher | None:
        if teacher is None:
            return None
        if 'backbone' in teacher:
            return self._build_encoder_teacher(teacher)
        if not has_class_loss(type(self.head)):
            raise ValueError(
                f'the loss of {type(self.head).__name__} does not support '
                'distillation; use LinearClsHead'
            )
        built = Teacher(**teacher)
        if built.compares_tokens and not self.has_tokens:
            raise ValueError(
                f'{type(self).__name__} has no tokens for a teacher; use '
                'TokenReductionClassifier, or LogitDistillation'
            )
        return built

    def _build_encoder_teacher(self, teacher: dict) -> EncoderTeacher:
        backbone = self.backbone
        if not self.has_tokens or backbone.reduces or backbone.cache:
            raise ValueError(
                'teacher: layer distillation needs a TokenReductionClassifier '
                'without reducer and cache'
            )
        built = EncoderTeacher(**teacher, student=backbone)
        self.distill = nn.ModuleList(built.losses)
        return built

    def init_weights(self) -> None:
        """Initialize parameters, and see that there is the teacher."""
        super().init_weights()
        if self.teacher is not None:
            self.teacher.prepare(self)

    def look(self, inputs: Tensor) -> tuple:
        """Return what the head reads, and the last tokens if there are
        any."""
        return self.extract_feat(inputs), None

    def loss(self, inputs: Tensor, data_samples: list[DataSample]) -> dict:
        """Losses of the head and of the teacher, by name.

        Args:
            inputs (Tensor): Images (B, 3, H, W).
            data_samples (list[DataSample]): Their annotations.
        """
        return self._losses(inputs, data_samples, *self.look(inputs))

    def _losses(self, inputs, data_samples, feats, tokens) -> dict:
        if self.teacher is None or self.teacher.compares_layers:
            return self.head.loss(feats, data_samples)
        # once: the head may have batch statistics
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
    """Image classifier over a :class:`Reducible` backbone.

    It adds the auxiliary loss of the reducer and those of a teacher, checks
    when it is built that head and backbone fit, and reports which parameters
    of the head are new when a checkpoint is loaded.

    Args:
        backbone (dict): Config of the backbone.
        neck (dict, optional): Config of a neck. Defaults to None.
        head (dict, optional): Config of the head. Defaults to None.
        **kwargs: ``teacher`` and others of :class:`DistilledClassifier`.

    Raises:
        ValueError: If the backbone is no :class:`Reducible`; if a CLA or
            layer fusion head would read another number of layers than the
            backbone returns, or other channels, a CLA head normalized layers
            or something else than CLS tokens; if there is a distillation
            token and the head does not read it, or the other way round; if
            a head of one vector a class has no neck that makes these; see
            also :class:`DistilledClassifier`; at the first training step, if
            the reducer needs a teacher and there is none.
    """

    has_tokens = True

    def __init__(self, *parts, **kwargs):
        super().__init__(*parts, **kwargs)
        if not isinstance(self.backbone, Reducible):
            raise ValueError(
                f'{type(self.backbone).__name__} is not a backbone for '
                "TokenReductionClassifier; use type='ImageClassifier'"
            )
        check_head(self.backbone, self.head, self.with_neck)
        # parameters outside the backbone may be new, and are reported
        self._register_load_state_dict_pre_hook(
            _load_around_backbone, with_module=True
        )

    def extract_feat(self, inputs: Tensor, stage: str = 'neck'):
        """See ``ImageClassifier.extract_feat``."""
        one_of(('backbone', 'neck', 'pre_logits'), stage=stage)
        if stage == 'backbone':
            return self.backbone.forward_tokens(inputs)[0]
        feats, _ = self.look(inputs)
        return self.head.pre_logits(feats) if stage == 'pre_logits' else feats

    def look(self, inputs: Tensor) -> tuple:
        """See :class:`DistilledClassifier`."""
        feats, tokens = self.backbone.forward_tokens(inputs)
        return self.neck(feats) if self.with_neck else feats, tokens

    def loss(self, inputs: Tensor, data_samples: list[DataSample]) -> dict:
        """Losses of the head, the reducer and the teacher, by name.

        Args:
            inputs (Tensor): Images (B, 3, H, W).
            data_samples (list[DataSample]): Their annotations.
        """
        self._check_teacher()
        follows = self.teacher is not None and self.teacher.compares_layers
        model = recording_copy(self) if follows else self
        feats, tokens = model.look(inputs)
        losses = self._losses(inputs, data_samples, feats, tokens)
        if follows:
            layers = LayerFeatures.recorded(model.backbone, tokens.x)
            losses |= self.teacher.teach(inputs, self, ours=layers)
        return losses | self.backbone.reducer.loss(tokens)

    def _check_teacher(self) -> None:
        reducer, teacher = self.backbone.reducer, self.teacher
        has_tokens = teacher is not None and teacher.compares_tokens
        if reducer.needs_teacher and not has_tokens:
            raise ValueError(
                f'{type(reducer).__name__} needs the tokens of a teacher; add '
                'teacher=dict(model=..., checkpoint=..., '
                "loss=dict(type='mmclca.TokenDistillation'))"
            )
