# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Accuracy of a model, for readers without knowledge of statistics."""

from mmclca.fitting.console_text import describe_validity, why_unmeasured
from mmclca.fitting.record import FitRecord
from mmclca.fitting.report_text import out_of_hundred


def describe_result(record: FitRecord) -> str:
    """Describe the accuracy of a model in Markdown, and where it holds."""
    best = record.best
    if best.accuracy is None:
        return f'**The accuracy was not measured:** {why_unmeasured(record)}.'
    right = out_of_hundred(best.accuracy)
    verb, between = 'gets' if right == 1 else 'get', ''
    if best.low is not None and best.high is not None:
        low, high = map(out_of_hundred, (best.low, best.high))
        between = f', probably between {low} and {high}'
    return (
        f'**Of 100 new photos like these, about {right} {verb} the right '
        f'name**{between}. This applies to {describe_validity(record)}.'
    )
