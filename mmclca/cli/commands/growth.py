# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""What ``tools/benchmark/growth.py`` does."""

from pathlib import Path

from mmclca.benchmark.candidates import Size, reduced_vit, timm_vit
from mmclca.benchmark.checks import check_img_size, check_setting, with_memory
from mmclca.benchmark.comparison import compare
from mmclca.benchmark.growth import attention_share, draw_growth, exponents
from mmclca.benchmark.pages import (
    line,
    machine_lines,
    out_of_memory_lines,
    page,
    table_head,
    write_results,
)
from mmclca.benchmark.parts import seconds_of_parts

from ..benchmark import begin, check_out, setting_of

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
    args.setting = setting_of(args, args.batch)
    check_setting(parser, args.setting)
    args.memory = with_memory(parser, args.setting, args.memory, default=True)
    check_out(parser, args.out, SUFFIXES)


def numbers(memory, shares):
    """The columns that are measured."""
    left_out = ['memory_mib', 'memory_ratio', 'features_mib']
    left_out = left_out * (not memory)
    left_out += ['attention_of_time'] * (not shares)
    return [column for column in NUMBERS if column[0] not in left_out]


def can_time_parts(setting):
    """Whether the time of attention can be told: in eager inference."""
    return not setting.train and setting.compile_mode is None


def measure(args, missing):
    """Records of all models at all sizes."""
    sizes = [Size.of_arch(args.arch, px) for px in sorted(set(args.img_size))]
    for result in compare(
        {
            timm_vit(size): [reduced_vit(size, *one) for one in MODELS]
            for size in sizes
        },
        args.setting,
        args.rounds,
        args.warm_up,
        len(MODELS),
        args.memory,
        missing,
    ):
        yield record_of(result, args)


def record_of(result, args):
    """All numbers of a model at a size."""
    candidate, record = result.candidate, result.record()
    record.update(
        label=candidate.label,
        seconds_per_image=1 / result.images_per_second,
        attention_of_gmacs=attention_share(result.cost, candidate.size),
    )
    if can_time_parts(args.setting):
        shares = attention_of_time(candidate, args.setting, args.rounds)
        record.update(attention_of_time=shares)
    if args.memory:
        record.update(features_mib=beside_weights(record))
    return record


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


def write(args, facts, records, lines, fitted):
    """Write the page, the CSV, the JSON and the plot."""
    lines = [*lines, '', f'![growth]({Path(args.out).name}.png)']
    words = args.setting.words()
    text = page(f'{TITLE}, {args.arch}', words, facts, lines)
    write_results(
        args.out, text, args.setting, facts, records, exponents=fitted
    )
    keys = next(iter(fitted.values()))
    titles = {key: title for key, title in GROWING.items() if key in keys}
    draw_growth(records, fitted, titles, f'{args.out}.png')


def main(args):
    facts = begin(__file__, args.setting)
    shown = numbers(args.memory, can_time_parts(args.setting))
    lines = table_head(['px', 'model', *(title for _, title, _ in shown)])
    head = [args.setting.words(), '', *machine_lines(facts), '']
    print(*head, *lines, sep='\n')
    records, missing = [], []
    for record in measure(args, missing):
        records.append(record)
        lines.append(table_line(record, shown))
        print(lines[-1], flush=True)
    keys = [key for key, *_ in shown if key in GROWING]
    fitted = exponents(records, keys)
    powers = ['', '## Exponents of the pixels', '']
    powers += exponent_lines(fitted, keys)
    print(*powers, sep='\n')
    lines += out_of_memory_lines(missing) + powers
    if args.out and fitted:
        write(args, facts, records, lines, fitted)
