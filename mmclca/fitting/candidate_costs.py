# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Costs of candidates, and selection of the first within a budget."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from math import ceil
from typing import Any, NamedTuple

from mmclca.benchmark.latency_table import look_up_or_time
from mmclca.benchmark.layer_times import look_up_layer_times
from mmclca.benchmark.timing import RUNTIMES
from mmclca.evaluation.cost import Cost
from mmclca.models import Variant

from .budget import Budget, BudgetError
from .record_parts import describe_variant

TOLERANCE = 1.01  # times the budget: 160 px need 0.301 GMACs
SKIP_FACTOR = 1.5  # times the latency budget: candidates are not measured


@dataclass(frozen=True)
class CountedCandidate:
    """A candidate, its classifier config and its counted cost."""

    variant: Variant
    config: dict[str, Any] = field(compare=False)
    cost: Cost = field(compare=False)


class CandidateCost(NamedTuple):
    """A candidate's cost in the budget's unit, and a note for errors."""

    variant: Variant
    cost: float
    note: str = ''


def confirm_predicted(
    candidates: Iterable[CountedCandidate], budget: Budget
) -> Iterator[CandidateCost]:
    """Yield the latencies of candidates predicted to be within the budget.

    Exporting a network to ONNX takes seconds, so its latency is predicted from
    that of a layer, and then measured. If a candidate exceeds the budget after
    all, only cheaper ones follow. The last one is the cheapest.
    """
    layer_times = None
    limit = TOLERANCE * budget.amount
    predictions: dict[CountedCandidate, float] = {}
    confirmed = set()
    for candidate in candidates:
        cost = candidate.cost
        if layer_times is None:  # the first candidate has most tokens
            backbone = candidate.config['backbone']
            layer_times = look_up_layer_times(backbone, max(cost.attended))
        method = candidate.variant.method
        predictions[candidate] = layer_times.predict(cost, method)
        if predictions[candidate] <= limit:
            yield time_candidate(candidate, 'onnx', 'cpu')
            confirmed.add(candidate)
            limit = min(limit, 0.999 * predictions[candidate])
    cheapest = min(predictions, key=predictions.__getitem__)
    if cheapest not in confirmed:
        yield time_candidate(cheapest, 'onnx', 'cpu')


def measure_by_pace(
    candidates: Iterable[CountedCandidate],
    budget: Budget,
    runtime: str,
    device: str,
) -> Iterator[CandidateCost]:
    """Yield the latency of each candidate.

    If it is expected to be far above the budget from that of another
    candidate, it is not measured.
    """
    pace, note = 0.0, ''  # milliseconds per GMACs
    for candidate in candidates:
        gmacs = candidate.cost.gmacs
        if pace * gmacs < SKIP_FACTOR * budget.amount:
            measured = time_candidate(candidate, runtime, device)
            pace, note = measured.cost / gmacs, measured.note
        yield CandidateCost(candidate.variant, pace * gmacs, note)


def time_candidate(
    candidate: CountedCandidate, runtime: str, device: str
) -> CandidateCost:
    """Measure the latency of a candidate, unless it is stored."""
    models = {candidate.variant: candidate.config}
    times, busy = look_up_or_time(models, runtime, device)
    note = f' in {RUNTIMES[runtime]}' + (f'; {busy}' if busy else '')
    return CandidateCost(candidate.variant, times[candidate.variant], note)


def find_within_budget(
    costs: Iterable[CandidateCost], budget: Budget
) -> CandidateCost:
    """Return the first candidate within the budget.

    A cost of at most 1% more is within it. If all models cost too much, the
    ``BudgetError`` ends with the note of the cheapest one.
    """
    costly = []
    for candidate in costs:
        if candidate.cost <= TOLERANCE * budget.amount:
            return candidate
        costly.append(candidate)
    cheapest = min(costly, key=lambda candidate: candidate.cost)
    # rounded up, to be valid as a budget
    enough = ceil(1000 * cheapest.cost) / 1000
    raise BudgetError(
        f'budget {budget.amount:g}{budget.unit}: no model fits; the cheapest '
        f'needs {enough:g} {budget.unit} '
        f'({describe_variant(cheapest.variant)}){cheapest.note}'
    )
