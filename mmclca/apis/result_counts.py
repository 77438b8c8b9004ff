# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Count classified, unknown, uncertain and unreadable photos."""

from collections.abc import Mapping, Sequence
from typing import Any

UNSURE = 0.6  # lower scores: more than 4 in 10 predictions are wrong


def describe_counts(
    results: Sequence[Mapping[str, Any]], noun: str = 'photos'
) -> str:
    """Count photos or plants by their results, in a sentence.

    Args:
        results (Sequence[Mapping]): Results from
            :class:`TokenReductionInferencer`.
        noun (str): What a result is for. Defaults to 'photos'.
    """
    read = [result for result in results if 'error' not in result]
    counts = [f'Classified {len(read)} of {len(results)} {noun}']
    if any(result['known'] is not None for result in read):
        unknown = sum(result['known'] is False for result in read)
        counts.append(f'{unknown} flagged as unknown')
    if unsure := sum(result['pred_score'] < UNSURE for result in read):
        counts.append(f'{unsure} with a score below {UNSURE:.0%}')
    if unreadable := len(results) - len(read):
        counts.append(f'{unreadable} unreadable')
    return f'{"; ".join(counts)}.'
