# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Candidate models for pretrained weights, and selection by cost."""

from typing import Any, NamedTuple

from mmclca.benchmark.timing import find_runtime
from mmclca.evaluation.cost import count_config
from mmclca.models import Variant

from .budget import parse_budget
from .candidate_costs import (
    CandidateCost,
    CountedCandidate,
    confirm_predicted,
    find_within_budget,
    measure_by_pace,
)
from .model_config import build_config
from .options import FitOptions
from .record_parts import require_part
from .weights import PIXELS, VIT, PretrainedWeights

# image sizes of candidates without token reduction
IMAGE_SIZES = (224, 208, 192, 160, 144, 128)
# NO_REDUCTION keeps every token, ATC and DiffRate keep half
NO_REDUCTION: dict[str, Any] = dict(
    method=None, keep_rate=1.0, out_type='cls_average_std'
)
ATC = dict(NO_REDUCTION, method='ATC', keep_rate=0.5)
DIFF_RATE = dict(ATC, method='DiffRate')


class MeasuredCandidate(NamedTuple):
    """Reduction and image size, with the accuracy (%) of the linear probe.

    It is the mean over fifteen datasets and five random splits with three
    photos per class, see docs/results/few_photos.md.
    """

    reduction: dict[str, Any]
    img_size: int
    accuracy: float


# the full model, then the default, then all others by accuracy
DEIT = (
    MeasuredCandidate(NO_REDUCTION, 224, 71.7),
    MeasuredCandidate(ATC, 224, 71.0),
    MeasuredCandidate(DIFF_RATE, 224, 70.9),
    MeasuredCandidate(ATC, 192, 70.4),
    MeasuredCandidate(DIFF_RATE, 192, 69.8),
    MeasuredCandidate(NO_REDUCTION, 160, 68.4),
    MeasuredCandidate(ATC, 160, 67.3),
    MeasuredCandidate(DIFF_RATE, 160, 66.9),
    MeasuredCandidate(ATC, 128, 62.4),
)
# the same for ViT-Tiny, which normalizes pixels with 0.5
VIT_TINY = (
    MeasuredCandidate(NO_REDUCTION, 224, 75.1),
    MeasuredCandidate(DIFF_RATE, 224, 74.3),
    MeasuredCandidate(ATC, 224, 74.2),
    MeasuredCandidate(NO_REDUCTION, 160, 73.5),
    MeasuredCandidate(ATC, 192, 73.0),
    MeasuredCandidate(DIFF_RATE, 192, 72.8),
    MeasuredCandidate(ATC, 160, 71.5),
    MeasuredCandidate(DIFF_RATE, 160, 70.7),
    MeasuredCandidate(ATC, 128, 67.6),
)


def list_variants(pretrained: PretrainedWeights) -> tuple[Variant, ...]:
    """List the candidates, the preferred one first.

    A ViT has the rows of ``DEIT`` or ``VIT_TINY``, other networks their full
    model at the image sizes they support, the largest first.
    """
    backbone = pretrained.backbone
    if pretrained.is_vit:
        return tuple(get_measured_accuracies(pretrained))
    sizes = (backbone['img_size'],) if 'img_size' in backbone else IMAGE_SIZES
    return tuple(Variant(None, 1.0, size) for size in sizes)


def get_measured_accuracies(
    pretrained: PretrainedWeights,
) -> dict[Variant, float]:
    """Look up the accuracy (%) of ViT candidates with similar weights."""
    table = VIT_TINY if pretrained.pixels == PIXELS['half'] else DEIT
    layers = tuple(range(require_part(pretrained.depth, 'depth')))
    return {
        Variant(**row.reduction, img_size=row.img_size, layers=layers): (
            row.accuracy
        )
        for row in table
    }


def choose_candidate(
    pretrained: PretrainedWeights,
    num_classes: int,
    options: FitOptions,
    device: str,
) -> tuple[Variant, float | None]:
    """Select the first candidate within the budget, and return its cost.

    Without a budget, it is the first one with token reduction, at about half
    the cost of the full ViT.
    """
    candidates = list_variants(pretrained)
    if options.budget is None:
        reduced = (variant for variant in candidates if variant.method)
        return next(reduced, candidates[0]), None
    models = {
        variant: build_config(pretrained, variant, num_classes).model
        for variant in candidates
    }
    budget = parse_budget(options.budget)
    # lazy: counting stops at the first candidate within the budget
    costs = (
        CountedCandidate(variant, config, count_config(config))
        for variant, config in models.items()
    )
    if budget.unit == 'GMACs':
        candidate = find_within_budget(
            (CandidateCost(x.variant, x.cost.gmacs) for x in costs), budget
        )
        return candidate.variant, candidate.cost
    runtime = find_runtime(options.runtime, device)
    if pretrained.backbone['type'] == VIT and runtime == 'onnx':
        measured = confirm_predicted(costs, budget)
    else:
        measured = measure_by_pace(costs, budget, runtime, device)
    candidate = find_within_budget(measured, budget)
    return candidate.variant, candidate.cost
