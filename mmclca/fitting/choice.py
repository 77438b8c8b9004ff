# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Choice among several pretrained backbones by accuracy and cost."""

from dataclasses import replace

from mmclca.datasets.photos import PhotoCheck

from .budget import NO_BUDGET, BudgetError, parse_budget
from .model import Plan, compute_cost, describe, make_plan
from .options import FitOptions
from .probing import fit_classifier, join_near_duplicates
from .record import FitFolder, FitRecord


def choose_plan(
    files: FitFolder,
    record: FitRecord,
    checked: PhotoCheck,
    device: str | None,
) -> tuple[Plan, FitRecord]:
    """Plan with the most accurate backbone, and note the others.

    Each backbone has the first of its candidates within the budget; its
    accuracy is cross-validated on the training photos, after near-duplicates
    were joined. A resumed fit keeps the recorded backbone.
    """
    recorded = FitOptions(
        **{key: x for key, x in record.call.items() if key != 'photos'}
    )
    calls = [
        dict(record.call, weights=weights, arch=arch)
        for weights, arch in recorded.pair_weights()
    ]
    if record.considered:
        source = record.weights['source']
        calls = [call for call in calls if call['weights'] == source]
    given = [(files, replace(record, call=x), checked, device) for x in calls]
    if len(given) == 1:
        return make_plan(*given[0]), record
    plans, costly = [], {}
    for one in given:
        try:
            plans.append(make_plan(*one))
        except BudgetError as error:
            costly[one[1].call['weights']] = error
    if not plans:
        raise next(iter(costly.values()))
    record = join_near_duplicates(plans[0], record)  # for all plans
    rows = [_measured(plan) for plan in plans]
    # the cheapest of equally accurate ones
    order = [(x['accuracy'] or 0, -(x['ms'] or x['gmacs'])) for x in rows]
    plan = plans[order.index(max(order))]
    rows += [dict.fromkeys(rows[0]) | dict(source=name) for name in costly]
    return plan, replace(record, considered=rows)


def _measured(plan: Plan) -> dict:
    """Measure accuracy, GMACs, and milliseconds if the budget has them."""
    found = fit_classifier(plan, plan.probe, plan.training, plan.views)
    _, unit = parse_budget(plan.call['budget'] or NO_BUDGET)
    return dict(
        source=plan.pretrained.source,
        model=describe(plan.variant),
        gmacs=compute_cost(plan)['gmacs'],
        ms=plan.cost if unit == 'ms' else None,
        accuracy=float(found.accuracy.mean()) if found.independent else None,
    )
