# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""A teacher, and the checks that it fits its student."""

from copy import deepcopy
from dataclasses import dataclass
from inspect import signature
from numbers import Real
from pathlib import Path

import torch
import torch.nn.functional as F
from mmengine.config import Config
from mmengine.logging import MMLogger
from mmpretrain.models.classifiers import ImageClassifier
from torch import Tensor, nn

from mmclca.checkpoints.error import CheckpointError
from mmclca.checkpoints.loading import fit_weights, refuse_broken
from mmclca.checkpoints.opening import open_checkpoint
from mmclca.registry import MODELS

from .looking import as_reducible
from .reduction.tokens import Tokens


def check_options(options: dict) -> None:
    """Refuse what are no options of a teacher."""
    known = signature(Teacher).parameters
    if not (
        isinstance(options, dict)
        and {'config', 'checkpoint'} <= options.keys() <= known.keys()
        and isinstance(options['checkpoint'], str)
    ):
        raise ValueError(
            f'teacher={options!r} is not allowed: give a dict with config and '
            'checkpoint, the path or address of trained weights; of others '
            f'there are {", ".join([*known][2:])}'
        )


def check_kind(teacher: nn.Module) -> None:
    """Refuse what is no classifier with all tokens of a transformer."""
    if not (isinstance(teacher, ImageClassifier) and teacher.with_head):
        raise ValueError(
            f'{type(teacher).__name__} is no ImageClassifier with a head'
        )
    teacher.backbone = as_reducible(teacher.backbone)
    if teacher.backbone.reduces:
        kind = type(teacher.backbone.reducer)
        raise ValueError(
            f'{kind.__name__} reduces its tokens; a teacher keeps all: take '
            'the config without a reducer'
        )


def check_fit(teacher: nn.Module, student, token_weight: float) -> None:
    """Refuse a teacher that a student cannot learn from."""
    backbones = teacher.backbone, student.backbone
    classes = [head.num_classes for head in (teacher.head, student.head)]
    pairs = {
        'classes (head.num_classes)': classes,
        'normalization (data_preprocessor)': _normalizations(teacher, student),
    }
    if token_weight:
        pairs['channels (embed_dims)'] = [b.embed_dims for b in backbones]
        pairs['patch_size'] = [b.stride for b in backbones]
    for what, (theirs, ours) in pairs.items():
        if theirs != ours:
            raise ValueError(
                f'it has {what} {theirs}, the student {ours}; they must be '
                'the same (with token_weight=0, which compares class '
                'scores only, just classes and normalization)'
            )


def _normalizations(*models: nn.Module) -> list:
    """Mean and deviation of each model; two None where one has no say."""
    found = [
        dict(
            mean=p.mean.flatten().tolist(),
            std=p.std.flatten().tolist(),
            to_rgb=p.to_rgb,
        )
        for p in (model.data_preprocessor for model in models)
        if p._enable_normalize
    ]
    if len(found) == 1:
        MMLogger.get_current_instance().warning(
            'teacher: only one of teacher and student says how images are '
            'normalized; both see them as the student does'
        )
    return found if len(found) == len(models) else [None] * len(models)


@dataclass(eq=False)
class Teacher:
    """A frozen vision transformer with all its tokens, to distill from.

    It is no module: it has no part in the parameters, the state dict, the
    optimizer and the modes of the student, and copies of the student share
    it. `DynamicViT`, section 3.4, equations 13 to 15; plain knowledge
    distillation for every other method. Both models see the same normalized
    images.

    Its files are not asked for before :meth:`prepare`, which a training calls
    before its first iteration; its weights are read when the first batch
    needs them.

    Raises:
        ValueError: If a weight or the temperature is not allowed.
    """

    config: str | dict
    checkpoint: str
    logit_weight: float = 0.5
    token_weight: float = 0.5
    temperature: float = 1.0

    def __post_init__(self):
        weights = self.logit_weight, self.token_weight
        numbers = (*weights, self.temperature)
        if not all(isinstance(number, Real) for number in numbers) or (
            min(weights) < 0 or self.temperature <= 0
        ):
            raise ValueError(
                f'teacher: logit_weight={self.logit_weight!r} and token_weight'
                f'={self.token_weight!r} must not be negative, temperature='
                f'{self.temperature!r} must be above 0'
            )
        self.model = None
        self.is_read = False

    def prepare(self, student) -> None:
        """Build and check the teacher, unless that is done.

        Args:
            student (TokenReductionClassifier): The student.

        Raises:
            ValueError: If the teacher is unknown, no vision transformer, has
                a reducer or does not fit the student; if its weights cannot
                be opened, or are not all of it.
        """
        if self.model is not None:
            return
        try:
            model = _build(self.config)
            check_kind(model)
            check_fit(model, student, self.token_weight)
            weights = open_checkpoint(self.checkpoint, mapped=True)
            model, _ = fit_weights(model, weights)
        except (CheckpointError, KeyError, OSError, ValueError) as error:
            raise ValueError(f'teacher: {error}') from error
        self.model = model.eval().requires_grad_(False)

    def _read(self) -> None:
        """Copy the parameters, still parts of a file, to memory."""
        refuse_broken(self.model, f'teacher: {self.checkpoint}')
        self.model, self.is_read = deepcopy(self.model), True

    def __deepcopy__(self, memo) -> 'Teacher':
        return self

    def losses(
        self, inputs: Tensor, scores: Tensor, tokens: Tokens, student
    ) -> dict[str, Tensor]:
        """Distillation losses by name.

        Args:
            inputs (Tensor): Images (B, 3, H, W).
            scores (Tensor): Class scores of the student, (B, classes).
            tokens (Tokens): Final tokens of the student.
            student (TokenReductionClassifier): The student.

        Raises:
            ValueError: See :meth:`prepare`; with the first batch, if weights
                of the teacher are not finite.
        """
        self.prepare(student)
        if not self.is_read:
            self._read()
        backbone = student.backbone
        teacher_scores, patches = self.answer(inputs, tokens.num_patches)
        losses = {}
        if self.logit_weight:
            losses['loss_distill_logits'] = (
                self.logit_weight * self.divergence(scores, teacher_scores)
            )
        if self.token_weight:
            if not backbone.final_norm:
                tokens = tokens.with_x(_standardize(tokens.x))
            error = backbone.reducer.token_loss(tokens, patches)
            losses['loss_distill_tokens'] = self.token_weight * error
        return losses

    @torch.no_grad()
    def answer(self, inputs: Tensor, num_patches: int):
        """Class scores, and the last patches (B, P, C) after a LayerNorm."""
        model = self.model.to(inputs)
        feats, tokens = model.backbone.forward_tokens(inputs)
        feats = model.neck(feats) if model.with_neck else feats
        patches = tokens.body[:, :num_patches]
        if not model.backbone.final_norm:
            patches = _standardize(patches)
        return model.head(feats), patches

    def divergence(self, scores: Tensor, teacher_scores: Tensor) -> Tensor:
        """Kullback-Leibler divergence of the student from the teacher."""
        T = self.temperature
        return T**2 * F.kl_div(
            (scores / T).log_softmax(dim=-1),
            (teacher_scores / T).log_softmax(dim=-1),
            reduction='batchmean',
            log_target=True,
        )


def _standardize(x: Tensor) -> Tensor:
    """LayerNorm without parameters: a CLA backbone has no final one."""
    return F.layer_norm(x, x.shape[-1:])


def _build(config: str | dict) -> nn.Module:
    if isinstance(config, str):
        if not Path(config).is_file():
            raise ValueError(
                f'there is no config file {config}; give the path of a '
                'config, or the config of a classifier as a dict'
            )
        file = Config.fromfile(config)
        config = file.model
        config.setdefault('data_preprocessor', file.get('data_preprocessor'))
    return MODELS.build(config)
