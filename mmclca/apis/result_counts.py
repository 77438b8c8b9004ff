# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Count classified, unknown, uncertain and unreadable photos."""

from collections.abc import Mapping, Sequence
from typing import Any

from mmclca.languages import text

UNSURE = 0.6  # lower scores: more than 4 in 10 predictions are wrong


def describe_counts(
    results: Sequence[Mapping[str, Any]], noun: str = 'photos'
) -> str:
    """Count photos or plants by their results, in a sentence.

    Args:
        results (Sequence[Mapping]): Results from
            :class:`TokenReductionInferencer`.
        noun (str): 'photos' or 'plants'. Defaults to 'photos'.
    """
    read = [result for result in results if 'error' not in result]
    classified = text(
        'test.classified',
        number=len(read),
        count=len(results),
        noun=text(f'test.noun_{noun}'),
    )
    counts = [classified]
    if any(result['known'] is not None for result in read):
        unknown = sum(result['known'] is False for result in read)
        counts.append(text('test.flagged_unknown', number=unknown))
    if unsure := sum(result['pred_score'] < UNSURE for result in read):
        limit = f'{UNSURE:.0%}'
        counts.append(text('test.low_score', number=unsure, limit=limit))
    if unreadable := len(results) - len(read):
        counts.append(text('test.unread', number=unreadable))
    return text('test.counts', counts=text('test.counts_joined').join(counts))
