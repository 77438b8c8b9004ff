# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""What ``tools/benchmark/throughput.py`` does."""

import sys
from contextlib import redirect_stdout
from dataclasses import replace
from pathlib import Path

from mmengine.config import Config

from mmclca.benchmark.batch_plot import draw_by_batch
from mmclca.benchmark.candidates import (
    Size,
    candidates_of,
    fused,
    mmpretrain_vit,
    of_config,
    timm_vit,
)
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
    if args.fuse and args.train:
        parser.error('--fuse is of inference')
    if args.baseline and args.arch:
        parser.error("--arch is measured beside timm's ViT, not --baseline")
    args.batch = list(dict.fromkeys(args.batch))
    args.setting = setting_of(args, min(args.batch))
    check_setting(parser, args.setting)
    check_at_once(parser, args.setting, args.at_once)
    args.memory = with_memory(parser, args.setting, args.memory, args.train)
    try:
        args.plan = plan(args)
    except ValueError as error:
        parser.error(str(error))
    check_out(parser, args.out, SUFFIXES)


def read_config(option, name, train):
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
        raise ValueError(f'{option} {name}: {reason}') from error


def plan(args):
    """The models beside each baseline, in the order of measuring.

    Raises:
        ValueError: If there are two of a name.
    """
    configs = [read_config('--configs', n, args.train) for n in args.configs]
    if args.baseline:
        baseline = read_config('--baseline', args.baseline, args.train)
        found = {baseline: chosen(args, baseline) + configs}
    else:
        found = by_size(args, configs)
    for baseline, candidates in found.items():
        if args.fuse:
            candidates += fused([baseline, *candidates])
        check_names([baseline, *candidates])
    return found


def by_size(args, configs):
    """The models beside timm's of their size."""
    sizes = {
        Size.of_arch(arch, img_size): []
        for arch in args.arch
        for img_size in args.img_size
    }
    for one in configs:
        sizes.setdefault(one.vit_size, []).append(one)
    return {
        timm_vit(size): chosen(args, mmpretrain_vit(size)) + own
        for size, own in sizes.items()
    }


def chosen(args, model):
    """A model with what the command line names."""
    methods = list(dict.fromkeys(args.methods))
    rates = dict.fromkeys(args.keep_rates)
    return candidates_of(model, methods, rates, CLCA[args.clca])


def check_names(candidates):
    """Refuse two rows of a name."""
    for i, one in enumerate(candidates):
        if one in candidates[:i]:
            raise ValueError(
                f'a row {one.name} {one.label} is there already; leave it '
                'out, or name the file differently'
            )


def measure(args, missing):
    """Measure all models; rows are printed as they come."""
    print(*table_head([title for title, *_ in columns(args.memory)]), sep='\n')
    for batch in args.batch:
        for result in compare(
            args.plan,
            replace(args.setting, batch=batch),
            args.rounds,
            args.warm_up,
            args.at_once,
            args.memory,
            missing,
        ):
            print(table_line(result, args.memory), flush=True)
            yield result


def profile(args, results):
    """Lines of a table: milliseconds and share of each part of a pass."""
    parts = [f'{part}, ms (%)' for part in PARTS]
    lines = table_head(['model', 'px', 'method', 'batch', 'ms', *parts])
    for result in results:
        setting = replace(args.setting, batch=result.batch)
        seconds, whole = seconds_of_parts(
            result.candidate, setting, args.rounds, args.warm_up
        )
        lines.append(profile_line(result, seconds, whole))
    return lines


def profile_line(result, seconds, whole):
    """The line of a model in the table of parts."""
    total = sum(seconds.values())
    candidate, size = result.candidate, result.candidate.size
    model = [candidate.name or size.name, size.pixels, candidate.label]
    shares = [
        f'{1e3 * part:.1f} ({100 * part / total:.1f})'
        for part in seconds.values()
    ]
    return line([*model, result.batch, f'{1e3 * whole:.1f}', *shares])


def title(args):
    """Of the page."""
    name = args.baseline and Path(args.baseline).stem
    return f'Speed compared with {name}' if name else TITLE


def write(args, facts, results, missing, profiled):
    """Write the page, the CSV, the JSON and the plot."""
    lines = table_head([title for title, *_ in columns(args.memory)])
    lines += [table_line(result, args.memory) for result in results]
    lines += out_of_memory_lines(missing)
    lines += ['', f'![speed-up]({Path(args.out).name}.png)']
    if profiled:
        lines += ['', '## Where the time of a forward pass goes', '']
        lines += profiled
    words = args.setting.words(args.batch)
    text = page(title(args), words, facts, lines)
    records = [result.record() for result in results]
    write_results(
        args.out, text, args.setting, facts, records, batches=args.batch
    )
    draw = draw_by_batch if len(args.batch) > 1 else draw_speed_up
    draw(results, f'{args.out}.png')


def main(args):
    facts = begin(__file__, args.setting)
    words = args.setting.words(args.batch)
    print(words, '', *machine_lines(facts), '', sep='\n')
    results, missing, profiled = [], [], []
    for result in measure(args, missing):
        results.append(result)
        if args.out:  # what is there stays, whatever ends the program
            write(args, facts, results, missing, profiled)
    if args.profile:
        profiled = profile(args, results)
        print('', *profiled, sep='\n')
    if args.out and results:
        write(args, facts, results, missing, profiled)
