# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Distillation losses on class scores and final tokens.

A loss maps a :class:`Compared` to losses by name. ``compares_tokens`` tells
whether it needs the final tokens of both models.
"""

from dataclasses import dataclass
from typing import Any, Literal

import torch.nn.functional as F
from torch import Tensor, nn

from mmclca.registry import MODELS
from mmclca.utils.messages import check_choice, check_number


@dataclass
class Compared:
    """Outputs of a student and its teacher for a batch.

    Args:
        backbone (Reducible, optional): Student backbone.
        teacher_scores (Tensor): Class scores from the teacher, (B, K).
        teacher_patches (Tensor, optional): Final teacher patch tokens (B, P,
            C), after a LayerNorm.
        base_loss (Tensor): Loss of ``scores`` on the labels.
        scores (Tensor): Class scores from the student (B, K), from CLS if it
            has a distillation token.
        dist_scores (Tensor, optional): Class scores from its distillation
            token.
        tokens (Tokens, optional): Final student tokens.
    """

    backbone: Any
    teacher_scores: Tensor
    teacher_patches: Tensor | None
    base_loss: Tensor
    scores: Tensor
    dist_scores: Tensor | None
    tokens: Any


def hard_term(
    scores: Tensor,
    teacher_scores: Tensor,
    tau: float = 1.0,
    reduction: str = 'mean',
) -> Tensor:
    """Compute the cross-entropy with the class predicted by the teacher.

    ``tau`` and ``reduction`` are ignored.
    """
    return F.cross_entropy(scores, teacher_scores.argmax(dim=1))


def soft_term(
    scores: Tensor,
    teacher_scores: Tensor,
    tau: float = 1.0,
    reduction: str = 'mean',
) -> Tensor:
    """Compute tau^2 KL(teacher || student) of scores divided by ``tau``.

    'mean' divides the sum by B x K, 'batchmean' by B.
    """
    divergence = F.kl_div(
        (scores / tau).log_softmax(dim=1),
        (teacher_scores / tau).log_softmax(dim=1),
        reduction='sum',
        log_target=True,
    )
    count = scores.numel() if reduction == 'mean' else len(scores)
    return tau**2 * divergence / count


TERMS = dict(hard=hard_term, soft=soft_term)
REDUCTIONS = ('mean', 'batchmean')
LEAST_TAU = 1e-3


def deit_distillation(
    cls_score: Tensor,
    dist_score: Tensor | None,
    teacher_score: Tensor,
    base_loss: Tensor,
    kind: Literal['hard', 'soft', 'none'] = 'hard',
    alpha: float = 0.5,
    tau: float = 1.0,
    reduction: Literal['mean', 'batchmean'] = 'mean',
) -> Tensor:
    """Compute DeiT's loss: (1 - alpha) base_loss + alpha teacher term.

    Touvron's thesis (2022), equations 3.2 and 3.3.

    Args:
        cls_score (Tensor): Scores (B, K) of CLS, or of a single output.
        dist_score (Tensor, optional): Scores of the distillation token, which
            learn from the teacher. None: ``cls_score`` learns from it.
        teacher_score (Tensor): Teacher scores, (B, K).
        base_loss (Tensor): Loss of ``cls_score`` on the labels.
        kind (str): See :class:`DeiTDistillation`; 'none' returns
            ``base_loss``.
        alpha (float): See :class:`DeiTDistillation`.
        tau (float): See :class:`DeiTDistillation`.
        reduction (str): See :class:`DeiTDistillation`.

    Raises:
        Error: If a setting is not allowed.
    """
    if kind == 'none':
        return base_loss
    loss = DeiTDistillation(kind, alpha, tau, reduction)
    outputs = Compared(
        backbone=None,
        teacher_scores=teacher_score,
        teacher_patches=None,
        base_loss=base_loss,
        scores=cls_score,
        dist_scores=dist_score,
        tokens=None,
    )
    return sum(loss(outputs).values())


@MODELS.register_module()
class DeiTDistillation(nn.Module):
    """Distillation of DeiT, with a distillation token or a single output.

    `Training data-efficient image transformers & distillation through
    attention`, section 4; Touvron's thesis (2022), equations 3.2 and 3.3. The
    distillation token learns from the teacher and CLS from the labels; a model
    with one output (CaiT, ResMLP, PatchConvNet) learns from both. The logged
    ``loss`` and ``loss_distill`` include their weights, 1 - alpha and alpha;
    training minimizes the sum.

    Args:
        kind (str): 'hard', the cross-entropy with the class predicted by the
            teacher, or 'soft', the divergence from its softened scores.
            Defaults to 'hard'.
        alpha (float): Teacher weight, 0 to 1. Defaults to 0.5.
        tau (float): Temperature that divides all scores if 'soft'. Defaults to
            1.
        reduction (str): Divisor of the sum over the batch if 'soft': 'mean',
            images times classes, as in DeiT's code; 'batchmean', images, as in
            the equation, K times larger. Defaults to 'mean'.

    Raises:
        Error: If a setting is not allowed.
    """

    compares_tokens = False

    def __init__(
        self,
        kind: Literal['hard', 'soft'] = 'hard',
        alpha: float = 0.5,
        tau: float = 1.0,
        reduction: Literal['mean', 'batchmean'] = 'mean',
    ):
        super().__init__()
        check_choice(TERMS, kind=kind)
        check_choice(REDUCTIONS, reduction=reduction)
        check_number(maximum=1, alpha=alpha)
        check_number(minimum=LEAST_TAU, tau=tau)
        self.alpha = alpha
        self.term, self.tau, self.reduction = TERMS[kind], tau, reduction

    def forward(self, seen: Compared) -> dict[str, Tensor]:
        """Return the weighted losses on labels and teacher."""
        student = seen.dist_scores
        if student is None:  # a single output
            student = seen.scores
        term = self.term(
            student, seen.teacher_scores, self.tau, self.reduction
        )
        return dict(
            loss=(1 - self.alpha) * seen.base_loss,
            loss_distill=self.alpha * term,
        )


@MODELS.register_module()
class LogitDistillation(nn.Module):
    """Divergence of the class scores from a teacher's, added to other losses.

    `Distilling the Knowledge in a Neural Network`, section 2; `DynamicViT`,
    section 3.4, equation 14. It is averaged over images.

    Args:
        weight (float): Loss weight. Defaults to 0.5.
        tau (float): Temperature that divides the scores. Defaults to 1.

    Raises:
        Error: If the weight is negative, or ``tau`` is below 0.001.
    """

    compares_tokens = False

    def __init__(self, weight: float = 0.5, tau: float = 1.0):
        super().__init__()
        check_number(weight=weight)
        check_number(minimum=LEAST_TAU, tau=tau)
        self.weight, self.tau = weight, tau

    def forward(self, seen: Compared) -> dict[str, Tensor]:
        """Compute ``loss_distill_logits``."""
        term = soft_term(
            seen.scores, seen.teacher_scores, self.tau, 'batchmean'
        )
        return dict(loss_distill_logits=self.weight * term)


@MODELS.register_module()
class TokenDistillation(nn.Module):
    """Difference of the final tokens from the patch tokens of a teacher.

    `DynamicViT`, section 3.4, equation 13, extended to every reducer: see
    :meth:`TokenReducer.token_loss`.

    Args:
        weight (float): Loss weight. Defaults to 0.5.

    Raises:
        Error: If the weight is negative.
    """

    compares_tokens = True

    def __init__(self, weight: float = 0.5):
        super().__init__()
        check_number(weight=weight)
        self.weight = weight

    def forward(self, seen: Compared) -> dict[str, Tensor]:
        """Compute ``loss_distill_tokens``."""
        backbone, tokens = seen.backbone, seen.tokens
        if not backbone.final_norm:
            tokens = tokens.with_features(standardize(tokens.features))
        error = backbone.reducer.token_loss(tokens, seen.teacher_patches)
        return dict(loss_distill_tokens=self.weight * error)


def standardize(x: Tensor) -> Tensor:
    """Apply a LayerNorm without parameters, as CLA lacks a final norm."""
    return F.layer_norm(x, x.shape[-1:])
