# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""What ``tools/benchmark/throughput.py`` does."""

import sys
from contextlib import redirect_stdout
from functools import partial
from pathlib import Path

import torch
from mmengine.config import Config
from mmengine.utils import ProgressBar

from mmclca.benchmark import out_of_memory
from mmclca.benchmark.candidates import Size, candidates_of, of_config
from mmclca.benchmark.checks import (
    check_at_once,
    check_img_size,
    check_setting,
    with_memory,
)
from mmclca.benchmark.comparison import compare, num_passes
from mmclca.benchmark.machine import machine
from mmclca.benchmark.pages import (
    as_csv,
    as_json,
    columns,
    line,
    machine_lines,
    page,
    table_head,
    table_line,
    write,
)
from mmclca.benchmark.parts import PARTS, seconds_of_parts
from mmclca.benchmark.speed_up_plot import draw_speed_up

from ..benchmark import CLCA, check_out, command_line, setting_of

SUFFIXES = ('md', 'csv', 'json', 'png')
TITLE = 'Speed of token reduction against its FLOPs'


def check(parser, args):
    """Refuse what would fail when the measuring has begun, or after it."""
    check_img_size(parser, *args.img_size)
    if args.profile and (args.compile or args.train):
        parser.error('--profile is of eager inference')
    setting = setting_of(args)
    check_setting(parser, setting)
    check_at_once(parser, setting, args.at_once)
    args.memory = with_memory(parser, setting, args.memory, args.train)
    try:
        args.plan = plan(args)
    except ValueError as error:
        parser.error(str(error))
    check_out(parser, args.out, SUFFIXES)


def read_config(name, train):
    """The classifier of a config file.

    Raises:
        ValueError: If it cannot be measured.
    """
    try:
        with redirect_stdout(sys.stderr):
            config = Config.fromfile(name)
            if 'model' not in config:
                raise ValueError('it has no model')
            model = config.model.to_dict()
            if train and model.get('teacher'):
                raise ValueError('a teacher, which is not measured')
            model.pop('teacher', None)
            return of_config(Path(name).stem, model)
    except (
        AssertionError,
        AttributeError,
        KeyError,
        OSError,
        SyntaxError,
        TypeError,
        ValueError,
    ) as error:  # what mmengine and mmpretrain raise for settings
        reason = ' '.join(str(error).split())
        raise ValueError(f'--configs {name}: {reason}') from error


def plan(args):
    """The models of each size, in the order in which they are measured."""
    sizes = {
        Size.of_arch(arch, img_size): []
        for arch in args.arch
        for img_size in args.img_size
    }
    for name in args.configs:
        candidate = read_config(name, args.train)
        own = sizes.setdefault(candidate.size, [])
        if candidate in own:
            raise ValueError(
                f'--configs {name}: a row {candidate.name} is there already; '
                'name the file differently'
            )
        own.append(candidate)
    methods = list(dict.fromkeys(args.methods))
    wanted = methods, dict.fromkeys(args.keep_rates), CLCA[args.clca]
    return {
        size: candidates_of(size, *wanted) + own for size, own in sizes.items()
    }


def measure(args, bar, missing):
    """Measure all models; rows are printed as they come."""
    print(*table_head([title for title, *_ in columns(args.memory)]), sep='\n')
    for size, candidates in args.plan.items():
        results = compare(
            size,
            candidates,
            setting_of(args),
            args.rounds,
            args.warm_up,
            args.at_once,
            args.memory,
            bar.update,
            partial(out_of_memory.note, missing),
        )
        for result in results:
            print(table_line(result, args.memory), flush=True)
            yield result


def profile(args, candidates):
    """Lines of a table: milliseconds and share of each part of a pass."""
    lines = table_head(
        ['model', 'px', 'method', 'ms', *(f'{part}, ms (%)' for part in PARTS)]
    )
    for candidate in candidates:
        seconds, whole = seconds_of_parts(
            candidate, setting_of(args), args.rounds, args.warm_up
        )
        lines.append(profile_line(candidate, seconds, whole))
    return lines


def profile_line(candidate, seconds, whole):
    """The line of a model in the table of parts."""
    total = sum(seconds.values())
    return line(
        [
            candidate.name or candidate.size.name,
            candidate.size.pixels,
            candidate.label,
            f'{1e3 * whole:.1f}',
            *(
                f'{1e3 * part:.1f} ({100 * part / total:.1f})'
                for part in seconds.values()
            ),
        ]
    )


def write_results(args, facts, results, missing, profiled):
    """Write the page, the CSV, the JSON and the plot."""
    lines = table_head([title for title, *_ in columns(args.memory)])
    lines += [table_line(result, args.memory) for result in results]
    lines += out_of_memory.lines(missing)
    lines += ['', f'![speed-up against GMACs]({Path(args.out).name}.png)']
    if profiled:
        lines += ['', '## Where the time of a forward pass goes', '']
        lines += profiled
    records = [result.record() for result in results]
    setting = setting_of(args)
    full = [
        dict(record, seconds=result.seconds)
        for record, result in zip(records, results, strict=True)
    ]
    texts = dict(
        md=page(TITLE, setting, facts, lines),
        csv=as_csv(records),
        json=as_json(setting, facts, full),
    )
    write(args.out, texts)
    draw_speed_up(results, f'{args.out}.png')


def main(args):
    setting = setting_of(args)
    torch.set_num_threads(args.threads)
    torch.manual_seed(0)
    facts = machine(setting, command_line(__file__))
    print(setting.words(), '', *machine_lines(facts), '', sep='\n')
    total = sum(
        num_passes(
            len(found), args.rounds, args.warm_up, args.at_once, args.memory
        )
        for found in args.plan.values()
    )
    results, missing = [], []
    bar = ProgressBar(total, file=sys.stderr)
    for result in measure(args, bar, missing):
        results.append(result)
        if args.out:  # what is there stays, whatever ends the program
            write_results(args, facts, results, missing, [])
    profiled = []
    if args.profile:
        profiled = profile(args, [result.candidate for result in results])
        print('', *profiled, sep='\n')
    if args.out and results:
        write_results(args, facts, results, missing, profiled)
