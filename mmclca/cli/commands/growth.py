# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""What ``tools/benchmark/growth.py`` does."""

import sys
from functools import partial
from pathlib import Path

import torch
from mmengine.utils import ProgressBar

from mmclca.benchmark import out_of_memory
from mmclca.benchmark.candidates import Size, reduced_vit
from mmclca.benchmark.checks import check_img_size, check_setting, with_memory
from mmclca.benchmark.comparison import compare, num_passes
from mmclca.benchmark.growth import attention_share, draw_growth, exponents
from mmclca.benchmark.machine import machine
from mmclca.benchmark.pages import (
    as_csv,
    as_json,
    line,
    machine_lines,
    page,
    table_head,
    write,
)
from mmclca.benchmark.parts import seconds_of_parts

from ..benchmark import check_out, command_line, setting_of

MODELS = (('EViT', 0.5, False), ('EViT', 0.1, True))
SUFFIXES = ('md', 'csv', 'json', 'png')
TITLE = 'Growth with the image size'
# key of a record, title, format
NUMBERS = (
    ('gmacs', 'GMACs', '.2f'),
    ('seconds_per_image', 's an image', '.3g'),
    ('speed_up', 'speed-up', '.2f'),
    ('gmacs_ratio', 'GMACs ratio', '.2f'),
    ('memory_mib', 'MiB', '.0f'),
    ('memory_ratio', 'of timm', '.2f'),
    ('features_mib', 'MiB beside weights', '.0f'),
    ('attention_of_gmacs', 'attention of GMACs', '.1%'),
    ('attention_of_time', 'attention of time', '.1%'),
)
GROWING = dict(
    seconds_per_image='time of an image (s)',
    features_mib='peak memory beside weights (MiB)',
    gmacs='GMACs of an image',
)


def check(parser, args):
    """Refuse what would fail when the measuring has begun, or after it."""
    check_img_size(parser, *args.img_size)
    if len(set(args.img_size)) < 2:
        parser.error('--img-size: two sizes at least, nothing grows with one')
    setting = setting_of(args)
    check_setting(parser, setting)
    args.memory = with_memory(parser, setting, args.memory, default=True)
    check_out(parser, args.out, SUFFIXES)


def numbers(memory, shares):
    """The columns that are measured."""
    left_out = ['memory_mib', 'memory_ratio', 'features_mib']
    left_out = left_out * (not memory)
    left_out += ['attention_of_time'] * (not shares)
    return [column for column in NUMBERS if column[0] not in left_out]


def watches(setting):
    """Whether the time of attention can be told: in eager inference."""
    return not setting.train and setting.compile_mode is None


def measure(args, bar, missing):
    """Records of all models at all sizes."""
    setting = setting_of(args)
    for img_size in sorted(set(args.img_size)):
        size = Size.of_arch(args.arch, img_size)
        models = [reduced_vit(size, *model) for model in MODELS]
        results = compare(
            size,
            models,
            setting,
            args.rounds,
            args.warm_up,
            len(models),
            args.memory,
            bar.update,
            partial(out_of_memory.note, missing),
        )
        for result in results:
            record = result.record()
            record.update(
                label=result.candidate.label,
                seconds_per_image=1 / result.images_per_second,
                attention_of_gmacs=attention_share(result.cost, size),
            )
            if watches(setting):
                record.update(
                    attention_of_time=attention_of_time(
                        result.candidate, setting, args.rounds
                    )
                )
            if args.memory:
                record.update(features_mib=beside_weights(record))
            yield record


def beside_weights(record):
    """Peak memory without the weights, in MiB; a page at least, which is
    what a resident set is counted in."""
    weights = 4 * record['params']
    return max(record['memory_mib'] - weights / 2**20, 4 / 2**10)


def attention_of_time(candidate, setting, rounds):
    """Share of the products of attention in the time of a pass."""
    seconds, _ = seconds_of_parts(candidate, setting, rounds, warm_up=1)
    return seconds['attention'] / sum(seconds.values())


def table_line(record, shown):
    """The line of a model at a size."""
    cells = [format(record[key], form) for key, _, form in shown]
    return line([record['pixels'], record['label'], *cells])


def exponent_lines(fitted, keys):
    """Table of exponents: those of the clock beside those of arithmetic."""
    lines = table_head(['model', *(GROWING[key] for key in keys)])
    for label, powers in fitted.items():
        lines.append(line([label, *(f'{powers[key]:.2f}' for key in keys)]))
    return lines


def write_results(args, facts, records, lines, fitted):
    """Write the page, the CSV, the JSON and the plot."""
    lines = [*lines, '', f'![growth]({Path(args.out).name}.png)']
    setting = setting_of(args)
    texts = dict(
        md=page(f'{TITLE}, {args.arch}', setting, facts, lines),
        csv=as_csv(records),
        json=as_json(setting, facts, records, exponents=fitted),
    )
    write(args.out, texts)
    keys = next(iter(fitted.values()))
    titles = {key: title for key, title in GROWING.items() if key in keys}
    draw_growth(records, fitted, titles, f'{args.out}.png')


def main(args):
    setting = setting_of(args)
    torch.set_num_threads(args.threads)
    torch.manual_seed(0)
    facts = machine(setting, command_line(__file__))
    passes = num_passes(
        len(MODELS), args.rounds, args.warm_up, len(MODELS), args.memory
    )
    bar = ProgressBar(passes * len(set(args.img_size)), file=sys.stderr)
    shown = numbers(args.memory, watches(setting))
    lines = table_head(['px', 'model', *(title for _, title, _ in shown)])
    print(setting.words(), '', *machine_lines(facts), '', *lines, sep='\n')
    records, missing = [], []
    for record in measure(args, bar, missing):
        records.append(record)
        lines.append(table_line(record, shown))
        print(lines[-1], flush=True)
    keys = [key for key, *_ in shown if key in GROWING]
    fitted = exponents(records, keys)
    powers = ['', '## Exponents of the pixels', '']
    powers += exponent_lines(fitted, keys)
    print(*powers, sep='\n')
    lines += out_of_memory.lines(missing) + powers
    if args.out and fitted:
        write_results(args, facts, records, lines, fitted)
