# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Accuracy of a model, for readers without knowledge of statistics."""

from mmclca.fitting.record import FitRecord
from mmclca.fitting.record_description import describe_record
from mmclca.languages import text


def describe_result(record: FitRecord) -> str:
    """Describe the accuracy of a model in Markdown, and where it holds."""
    described = describe_record(record)
    if described.why_unmeasured:
        return text('page.result.unmeasured', reason=described.why_unmeasured)
    (photos,) = described.validity.lines
    return text(
        'page.result.measured', accuracy=described.result.plain, photos=photos
    )
