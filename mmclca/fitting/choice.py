# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Choice among several pretrained backbones by accuracy and cost."""

from dataclasses import replace

from mmclca.datasets.photos import PhotoCheck

from .budget import NO_BUDGET, BudgetError, parse_budget
from .cost import compute_cost
from .cost_parts import ComparedWeights
from .fit_folder import FitFolder
from .options import FitOptions
from .plan import Plan, make_plan
from .probing import fit_classifier, join_near_duplicates
from .record import FitRecord
from .record_parts import describe_variant, require_part


def choose_plan(
    files: FitFolder,
    record: FitRecord,
    checked: PhotoCheck,
    options: FitOptions,
) -> tuple[Plan, FitRecord]:
    """Plan with the most accurate backbone, and note the others.

    Each backbone has the first of its candidates within the budget; its
    accuracy is cross-validated on the training photos, after near-duplicates
    were joined. A resumed fit keeps the recorded backbone.
    """
    trials = [
        replace(options, weights=weights, arch=arch)
        for weights, arch in options.pair_weights()
    ]
    if record.considered:
        source = require_part(record.weights, 'weights').source
        trials = [trial for trial in trials if trial.weights == source]
    if len(trials) == 1:
        return make_plan(files, record, checked, trials[0]), record
    plans: list[Plan] = []
    costly: dict[str, BudgetError] = {}
    for trial in trials:
        try:
            plans.append(make_plan(files, record, checked, trial))
        except BudgetError as error:
            costly[str(trial.weights)] = error
    if not plans:
        raise next(iter(costly.values()))
    # for all plans
    first, record = join_near_duplicates(plans[0], record)
    plans = [first, *(x.with_groups(first.checked) for x in plans[1:])]
    rows = [measure_backbone(plan) for plan in plans]
    # the cheapest of equally accurate ones
    order = [(row.accuracy or 0, -(row.ms or row.gmacs or 0)) for row in rows]
    plan = plans[order.index(max(order))]
    rows += [ComparedWeights(source) for source in costly]
    return plan, replace(record, considered=rows)


def measure_backbone(plan: Plan) -> ComparedWeights:
    """Measure accuracy, GMACs, and milliseconds if the budget has them."""
    cv = fit_classifier(plan, plan.probe, plan.training_photos, plan.views)
    budget = parse_budget(plan.options.budget or NO_BUDGET)
    return ComparedWeights(
        source=plan.pretrained.source,
        model=describe_variant(plan.variant),
        gmacs=compute_cost(plan).gmacs,
        ms=plan.budgeted_cost if budget.unit == 'ms' else None,
        accuracy=float(cv.accuracy.mean()) if cv.independent else None,
    )
