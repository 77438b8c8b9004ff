# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""With what and when results were measured."""


def provenance(
    probes: list[dict], results: list[dict], timed: dict
) -> dict[str, str]:
    """What results tell of where they come from.

    Args:
        probes (list[dict]): Results of probe arms.
        results (list[dict]): Results of trained arms.
        timed (dict): What milliseconds were measured with, ``machine``.

    Returns:
        dict[str, str]: What pages list, by its name: machines, versions and
        dates of each kind, and how long all training took.
    """
    facts = [probe['machine'] for probe in probes]
    told = dict(
        CPU=_joined(fact['CPU'] for fact in facts),
        versions=_joined(fact['versions'] for fact in facts),
        date=_span(fact['date'] for fact in facts),
        ms=f'{timed["machine"]["date"]}, load {timed["machine"]["load"]}',
    )
    if not results:
        return told
    hours = sum(result['seconds'] for result in results) / 3600
    return told | {
        'trained on': _joined(result['machine'] for result in results),
        'trained with': _joined(_versions(result) for result in results),
        'trained': _span(result['finished'][:10] for result in results)
        + f', {len(results)} runs, {hours:.1f} hours of one thread',
    }


def _versions(result: dict) -> str:
    return ', '.join(
        f'{name} {result["versions"][name]}'
        for name in ('python', 'torch', 'mmpretrain', 'timm', 'PIL')
    )


def _joined(values) -> str:
    return '; '.join(sorted(set(values)))


def _span(dates) -> str:
    first, *_, last = sorted(dates) * 2
    return first if first == last else f'{first} to {last}'
