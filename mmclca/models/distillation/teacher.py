# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from pathlib import Path

import torch
import torch.nn.functional as F
from mmengine.config import Config
from torch import Tensor, nn

from mmclca.checkpoints.trained import load_trained
from mmclca.registry import MODELS

from ..backbones import as_reducible
from ..reduction.tokens import Tokens
from .teacher_checks import check_fit, check_kind, check_numbers


class Teacher:
    """A frozen vision transformer with all its tokens, to distill from.

    It is no module: it has no part in the parameters, the state dict, the
    optimizer and the modes of the student, and copies of the student share
    it. `DynamicViT`, section 3.4, equations 13 to 15; plain knowledge
    distillation for every other method. Both models see the same normalized
    images.

    Args:
        student (TokenReductionClassifier): Who is taught.
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
        ValueError: If the teacher is unknown, no vision transformer, has a
            reducer, or does not fit the student.
    """

    def __init__(
        self,
        student,
        config: str | dict,
        checkpoint: str,
        logit_weight: float = 0.5,
        token_weight: float = 0.5,
        temperature: float = 1.0,
    ):
        check_numbers(logit_weight, token_weight, temperature)
        self.logit_weight = logit_weight
        self.token_weight = token_weight
        self.temperature = temperature
        self.model = _build(config)
        check_kind(self.model)
        self.model.backbone = as_reducible(self.model.backbone)
        check_fit(self.model, student, token_weight)
        if '://' not in checkpoint and not Path(checkpoint).is_file():
            raise ValueError(f'teacher: there is no file {checkpoint}')
        load_trained(self.model, checkpoint)
        self.model.eval().requires_grad_(False)

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
            student (Reducible): Its backbone.
        """
        teacher_scores, patches = self.answer(inputs, tokens.num_patches)
        losses = {}
        if self.logit_weight:
            losses['loss_distill_logits'] = (
                self.logit_weight * self.divergence(scores, teacher_scores)
            )
        if self.token_weight:
            if not student.final_norm:
                tokens = tokens.with_x(_standardize(tokens.x))
            error = student.reducer.token_loss(tokens, patches)
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
