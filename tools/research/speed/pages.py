# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Write benchmark results as Markdown, CSV, JSON and a picture."""

import json
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from math import prod
from pathlib import Path
from statistics import median

import matplotlib
import matplotlib.figure
import numpy as np

from mmclca.benchmark import Setting
from mmclca.utils.files import replace_file, replace_text, write_rows
from mmclca.utils.markdown import format_head, format_row

from .candidates import TIMM
from .comparison import Result

# column title, record key, format
COLUMNS = (
    ('model', 'model', ''),
    ('method', 'method', ''),
    ('keep rate', 'keep_rate', ''),
    ('CLCA', 'clca', ''),
    ('px', 'pixels', ''),
    ('tokens', 'tokens', ''),
    ('GMACs', 'gmacs', '.2f'),
    ('of distances', 'gmacs_of_distances', '.2f'),
    ('batch', 'batch', ''),
    ('images/s', 'images_per_second', '.4g'),
    ('speed-up', 'speed_up', '.2f'),
    ('quartiles', 'quartiles', ''),
    ('GMACs ratio', 'gmacs_ratio', '.2f'),
    ('efficiency', 'efficiency', '.2f'),
    ('MiB', 'memory_mib', '.0f'),
    ('of baseline', 'memory_ratio', '.2f'),
)

MARKERS = 'osD^vP*X<>'
DASHED = dict(color='0.5', linestyle='--', zorder=0)


def results_head() -> list[str]:
    """First two lines of the results table."""
    return format_head([title for title, *_ in COLUMNS])


def table_line(result: Result) -> str:
    """Row of a model in the results table; missing numbers are empty."""
    record = result.record()
    low, high = record['speed_up_quartile_1'], record['speed_up_quartile_3']
    record['quartiles'] = f'{low:.2f}-{high:.2f}' if result.baseline else ''
    return format_row(
        format(record[key], form) if record[key] else ''
        for _, key, form in COLUMNS
    )


def machine_lines(machine: dict[str, str]) -> list[str]:
    """Format the machine as a Markdown list."""
    marked = dict(machine, command=f'`{machine["command"]}`')
    return [f'- {name}: {fact}' for name, fact in marked.items()]


def exponents(results: list[Result]) -> list[dict]:
    """Fit power laws, number ~ pixels ** p, to the results of each model.

    Least squares on logarithms, for models with at least two image sizes.
    Each dict has ``model``, ``method``, ``batch``, and the exponents for
    ``GMACs``, ``seconds`` and, if measured, ``memory`` without weights.
    """
    models = defaultdict(list)
    for result in results:
        numbers = dict(GMACs=result.cost.flops, seconds=median(result.seconds))
        if result.memory is not None:
            # at least one memory page, the unit of resident sets
            beside = result.memory - 4 * result.cost.params
            numbers['memory'] = max(beside, 4096)
        pixels = prod(result.candidate.size.img_size)
        logarithms = models[
            result.candidate.full_title, result.candidate.label, result.batch
        ]
        logarithms.append(np.log([pixels, *numbers.values()]))
    fitted = []
    for key, logarithms in models.items():
        pixels, *values = np.transpose(logarithms)
        if np.ptp(pixels) > 0:
            powers = [float(np.polyfit(pixels, v, 1)[0]) for v in values]
            names = ('model', 'method', 'batch', *numbers)
            fitted.append(dict(zip(names, (*key, *powers), strict=True)))
    return fitted


def exponent_lines(fitted: list[dict]) -> list[str]:
    """Page section with the exponents, if any."""
    if not fitted:
        return []
    rows = [[*exponent.values()] for exponent in fitted]
    cells = [[*row[:3], *(f'{p:.2f}' for p in row[3:])] for row in rows]
    head = format_head([*fitted[0]])
    return [
        '',
        '## Exponents of the pixels',
        '',
        *head,
        *map(format_row, cells),
    ]


def write_comparison(
    prefix: str,
    title: str,
    setting: Setting,
    batches: Sequence[int],
    machine: dict[str, str],
    results: list[Result],
    missing: list[str],
) -> None:
    """Write a comparison as PREFIX.md, PREFIX.csv, PREFIX.json and PREFIX.png.

    ``machine`` comes from :func:`describe_machine`, and ``missing`` lists the
    models that exceed the GPU memory.
    """
    caption, fitted = setting.describe(batches), exponents(results)
    lines = [f'# {title}', '', f'{caption[0].upper()}{caption[1:]}.', '']
    lines += [*machine_lines(machine), '', *results_head()]
    lines += map(table_line, results)
    if missing:
        lines += ['', f'Out of memory: {"; ".join(missing)}.']
    lines += ['', f'![speed-up]({Path(prefix).name}.png)']
    lines += [*exponent_lines(fitted), '']
    records = [result.record() for result in results]
    content = dict(machine=machine, setting=asdict(setting), results=records)
    content['batches'] = batches
    if fitted:
        content['exponents'] = fitted
    as_json = json.dumps(content, indent=1) + '\n'
    replace_text(Path(f'{prefix}.md'), '\n'.join(lines))
    replace_text(Path(f'{prefix}.json'), as_json)
    keys = [k for k, v in records[0].items() if not isinstance(v, list)]
    rows = [keys, *([record[key] for key in keys] for record in records)]
    write_rows(f'{prefix}.csv', rows)
    draw_speed_up(results, f'{prefix}.png')


def draw_speed_up(results: list[Result], out: str) -> None:
    """Draw speed-ups with their quartiles, one panel per baseline.

    For one batch size, the x axis is the GMACs ratio and each line connects
    the keep rates of a method; on the dashed line, the speed-up equals the
    GMACs ratio. For several batch sizes, the x axis is the batch size and
    each line is a model; above the dashed line, the model is faster than the
    baseline.
    """
    groups = defaultdict(list)
    for result in results:
        groups[(result.baseline or result).candidate].append(result)
    size = 7.5 * len(groups), 7
    figure = matplotlib.figure.Figure(size, layout='constrained')
    axes = figure.subplots(1, len(groups), squeeze=False)[0]
    for axis, (baseline, members) in zip(axes, groups.items(), strict=True):
        _draw(
            axis,
            members,
            "timm's plain ViT" if baseline.source == TIMM else baseline.title,
        )
        axis.set_title(f'{baseline.size.name}, {baseline.size.pixels} px')
    replace_file(Path(out), partial(figure.savefig, dpi=130))


def _draw(axis, results: list[Result], baseline: str) -> None:
    batches = sorted({result.batch for result in results})
    several = len(batches) > 1
    if several:
        axis.axhline(1, **DASHED)
        axis.set(xlabel='images in a batch', xscale='log')
        axis.minorticks_off()
        axis.set_xticks(batches, batches)
    else:
        axis.axline((1, 1), slope=1, **DASHED)
        axis.set_xlabel(f'GMACs of {baseline} / GMACs')
    lines = defaultdict(list)
    for result in results:
        x = result.batch if several else result.gmacs_ratio
        lines[_legend(result, several)].append((x, *result.speed_up))
    for i, (name, points) in enumerate(lines.items()):
        places, low, middle, high = np.transpose(points)
        look = dict(marker=MARKERS[i % 10], linewidth=0.7, label=name)
        look['color'] = matplotlib.colormaps['tab20'](i % 20)
        axis.errorbar(places, middle, (middle - low, high - middle), **look)
    axis.set_ylabel(f'speed / speed of {baseline}')
    axis.grid(alpha=0.25)
    axis.spines[['top', 'right']].set_visible(False)
    axis.legend(fontsize=7, frameon=False, loc='upper left')


def _legend(result: Result, with_rate: bool) -> str:
    """Legend entry for a model, with or without its keep rate."""
    candidate = result.candidate
    clca = candidate.applied.clca and f'+ {candidate.applied.clca}'
    parts = (
        candidate.full_title,
        candidate.method,
        with_rate and candidate.applied.rates,
        clca,
    )
    return ' '.join(filter(None, parts))
