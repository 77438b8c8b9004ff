# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""What ``tools/benchmark/throughput.py`` does."""

import sys
from contextlib import redirect_stdout
from pathlib import Path

from mmengine.config import Config

from mmclca.benchmark.candidates import Size, candidates_of, of_config
from mmclca.benchmark.checks import (
    check_at_once,
    check_img_size,
    check_setting,
    with_memory,
)
from mmclca.benchmark.comparison import compare
from mmclca.benchmark.pages import (
    columns,
    line,
    machine_lines,
    out_of_memory_lines,
    page,
    table_head,
    table_line,
    write_results,
)
from mmclca.benchmark.parts import PARTS, seconds_of_parts
from mmclca.benchmark.speed_up_plot import draw_speed_up

from ..benchmark import CLCA, begin, check_out, setting_of
from ..mistakes import WRONG_INPUT

SUFFIXES = ('md', 'csv', 'json', 'png')
TITLE = 'Speed of token reduction against its FLOPs'


def check(parser, args):
    """Refuse what would fail when the measuring has begun, or after it."""
    check_img_size(parser, *args.img_size)
    if args.profile and (args.compile or args.train):
        parser.error('--profile is of eager inference')
    args.setting = setting_of(args)
    check_setting(parser, args.setting)
    check_at_once(parser, args.setting, args.at_once)
    args.memory = with_memory(parser, args.setting, args.memory, args.train)
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
            return of_config(Path(name).stem, model)
    except (*WRONG_INPUT, AttributeError) as error:
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


def measure(args, missing):
    """Measure all models; rows are printed as they come."""
    print(*table_head([title for title, *_ in columns(args.memory)]), sep='\n')
    for result in compare(
        args.plan,
        args.setting,
        args.rounds,
        args.warm_up,
        args.at_once,
        args.memory,
        missing,
    ):
        print(table_line(result, args.memory), flush=True)
        yield result


def profile(args, candidates):
    """Lines of a table: milliseconds and share of each part of a pass."""
    lines = table_head(
        ['model', 'px', 'method', 'ms', *(f'{part}, ms (%)' for part in PARTS)]
    )
    for candidate in candidates:
        seconds, whole = seconds_of_parts(
            candidate, args.setting, args.rounds, args.warm_up
        )
        lines.append(profile_line(candidate, seconds, whole))
    return lines


def profile_line(candidate, seconds, whole):
    """The line of a model in the table of parts."""
    total = sum(seconds.values())
    size = candidate.size
    model = [candidate.name or size.name, size.pixels, candidate.label]
    shares = [
        f'{1e3 * part:.1f} ({100 * part / total:.1f})'
        for part in seconds.values()
    ]
    return line([*model, f'{1e3 * whole:.1f}', *shares])


def write(args, facts, results, missing, profiled):
    """Write the page, the CSV, the JSON and the plot."""
    lines = table_head([title for title, *_ in columns(args.memory)])
    lines += [table_line(result, args.memory) for result in results]
    lines += out_of_memory_lines(missing)
    lines += ['', f'![speed-up against GMACs]({Path(args.out).name}.png)']
    if profiled:
        lines += ['', '## Where the time of a forward pass goes', '']
        lines += profiled
    text = page(TITLE, args.setting, facts, lines)
    records = [result.record() for result in results]
    write_results(args.out, text, args.setting, facts, records)
    draw_speed_up(results, f'{args.out}.png')


def main(args):
    facts = begin(__file__, args.setting)
    print(args.setting.words(), '', *machine_lines(facts), '', sep='\n')
    results, missing, profiled = [], [], []
    for result in measure(args, missing):
        results.append(result)
        if args.out:  # what is there stays, whatever ends the program
            write(args, facts, results, missing, profiled)
    if args.profile:
        profiled = profile(args, [result.candidate for result in results])
        print('', *profiled, sep='\n')
    if args.out and results:
        write(args, facts, results, missing, profiled)
