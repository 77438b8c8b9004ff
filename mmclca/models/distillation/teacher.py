# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.nn.functional as F
from mmengine.config import Config
from torch import Tensor, nn

from mmclca.checkpoints.downloading import open_checkpoint
from mmclca.checkpoints.error import CheckpointError
from mmclca.checkpoints.loading import fit_weights, refuse_broken
from mmclca.registry import MODELS

from ..backbones import as_reducible
from ..reduction.tokens import Tokens
from .teacher_checks import check_fit, check_kind, check_numbers


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

    Args:
        config (str | dict): Config file of the teacher, or the config of its
            classifier.
        checkpoint (str): Its trained weights.
        logit_weight (float): Weight of ``loss_distill_logits``, the
            Kullback-Leibler divergence of the class scores. Defaults to 0.5.
        token_weight (float): Weight of ``loss_distill_tokens``, see
            :meth:`TokenReducer.token_loss`. Defaults to 0.5.
        temperature (float): Divides the class scores of both.
            Defaults to 1.

    Raises:
        ValueError: If a weight or the temperature is not allowed.
    """

    config: str | dict
    checkpoint: str
    logit_weight: float = 0.5
    token_weight: float = 0.5
    temperature: float = 1.0

    def __post_init__(self):
        check_numbers(self.logit_weight, self.token_weight, self.temperature)
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
        model = _build(self.config)
        check_kind(model)
        model.backbone = as_reducible(model.backbone)
        check_fit(model, student, self.token_weight)
        try:
            model, _ = fit_weights(
                model, open_checkpoint(self.checkpoint, mapped=True)
            )
        except (CheckpointError, OSError, ValueError) as error:
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
                f'teacher: there is no config file {config}; give the path of '
                'a config, or the config of a classifier as a dict'
            )
        file = Config.fromfile(config)
        config = file.model
        config.setdefault('data_preprocessor', file.get('data_preprocessor'))
    try:
        return MODELS.build(config)
    except KeyError as error:
        raise ValueError(f'teacher: unknown model: {error}') from error
