# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""What ``tools/benchmark/throughput.py`` does."""

import shlex
import sys
from contextlib import redirect_stdout
from dataclasses import replace
from importlib.metadata import version
from itertools import chain
from pathlib import Path
from statistics import median

import torch
from mmengine.config import Config

from mmclca.benchmark import Setting, Size, candidates, pages
from mmclca.benchmark.comparison import compare
from mmclca.benchmark.machine import machine
from mmclca.benchmark.memory import obstacle
from mmclca.benchmark.profile import PARTS, seconds_of_parts
from mmclca.benchmark.speed_up_plot import draw_speed_up
from mmclca.utils.extras import require

from ..arguments import check_file
from ..mistakes import WRONG_INPUT

CLCA = dict(no=[False], yes=[True], both=[False, True])
# torch.compile gives up after eight models of a kind, timm's among them
MOST_COMPILED = 7
TITLE = 'Speed of token reduction against its FLOPs'


def check(parser, args):
    """Refuse what would fail when the measuring has begun, or after it."""
    args.batch = list(dict.fromkeys(args.batch))
    args.setting = Setting(
        args.device,
        args.threads,
        min(args.batch),
        args.amp,
        args.compile,
        args.train,
        args.cpu_time,
    )
    refusals = refused_options(args), refused_settings(args.setting)
    for problem in chain(*refusals):
        parser.error(problem)
    unmeasurable = obstacle(args.setting)
    if args.memory and unmeasurable:
        mode = args.compile
        given = f'--memory --compile {mode}' if mode else '--memory'
        parser.error(f'{given}: {unmeasurable}; leave one out')
    if args.memory is None:
        args.memory = args.train and not unmeasurable
    try:
        args.plan = plan(args)
    except (ImportError, ValueError) as error:
        parser.error(str(error))
    for suffix in ('md', 'csv', 'json', 'png') if args.out else ():
        check_file(parser, Path(f'{args.out}.{suffix}'))


def refused_options(args):
    """What is wrong with options that do not go together."""
    patch = f'{Size.patch_size}, the size of a patch'
    for size in args.img_size:
        if size % Size.patch_size:
            yield f'--img-size {size}: a multiple of {patch}'
    if args.profile and (args.compile or args.train):
        yield '--profile is of eager inference'
    if args.fuse and args.train:
        yield '--fuse is of inference'
    if args.baseline and args.arch:
        yield "--arch is measured beside timm's ViT, not --baseline"
    if args.compile and args.at_once > MOST_COMPILED:
        yield (
            f'--compile --at-once {args.at_once}: at most {MOST_COMPILED}, '
            "torch.compile gives up after eight models with timm's"
        )
    names = ('amp', 'compile', 'memory', 'profile', 'train')
    given = [f'--{name}' for name in names if vars(args)[name]]
    given += [f'--device {args.device}'] * (args.device != 'cpu')
    if args.backend == 'onnx' and given:
        yield (
            '--backend onnx is of inference in float32 on the CPU: leave out '
            f'{" and ".join(given)}'
        )


def refused_settings(setting):
    """What is wrong with the device, and with what it is to do."""
    device = setting.device
    if device.partition(':')[0] not in ('cpu', 'cuda'):
        yield f'--device {device}: cpu, cuda or cuda:1'
    try:
        torch.empty(0, device=device)
    except (AssertionError, RuntimeError) as error:
        yield f'--device {device}: {str(error).splitlines()[0]}'
    if setting.cpu_time and (setting.on_gpu or setting.threads > 1):
        yield (
            '--cpu-time: with --device cpu and --threads 1 only, the time of '
            'other threads would be added'
        )
    if setting.train and setting.batch < 2:
        reason = 'for the BatchNorm of the CLA head'
        yield f'--train --batch 1: at least 2, {reason}'


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
            return candidates.of_config(Path(name).stem, model)
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
    for baseline, beside in found.items():
        if args.fuse:
            beside += candidates.fused([baseline, *beside])
        check_names([baseline, *beside])
        if args.backend == 'onnx':
            require('onnx', 'onnxscript', 'onnxruntime', extra='deploy')
            beside[:] = candidates.with_onnx([baseline, *beside])[1:]
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
        candidates.timm_vit(size): chosen(
            args, candidates.mmpretrain_vit(size)
        )
        + own
        for size, own in sizes.items()
    }


def chosen(args, model):
    """A model with what the command line names."""
    methods = list(dict.fromkeys(args.methods))
    rates = dict.fromkeys(args.keep_rates)
    return candidates.candidates_of(model, methods, rates, CLCA[args.clca])


def check_names(rows):
    """Refuse two rows of a name."""
    for i, one in enumerate(rows):
        if one in rows[:i]:
            raise ValueError(
                f'a row {one.name} {one.label} is there already; leave it '
                'out, or name the file differently'
            )


def measure(args, missing):
    """Measure all models; rows are printed as they come."""
    print(*pages.results_head(args.memory), sep='\n')
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
            print(pages.table_line(result, args.memory), flush=True)
            yield result


def profile(args, results):
    """Lines of a table: milliseconds and share of each part of a pass."""
    parts = [f'{part}, ms (%)' for part in PARTS]
    titles = ['model', 'px', 'method', 'batch', 'ms', *parts]
    yield from pages.table_head(titles)
    for result in results:
        setting = replace(args.setting, batch=result.batch)
        rounds = args.rounds, args.warm_up
        seconds = seconds_of_parts(result.candidate, setting, *rounds)
        yield profile_line(result, seconds)


def profile_line(result, seconds):
    """The line of a model in the table of parts."""
    candidate, size = result.candidate, result.candidate.size
    model = [candidate.name or size.name, size.pixels, candidate.label]
    total = sum(seconds.values())
    shares = [
        f'{1e3 * part:.1f} ({100 * part / total:.1f})'
        for part in seconds.values()
    ]
    whole = f'{1e3 * median(result.seconds):.1f}'
    return pages.line([*model, result.batch, whole, *shares])


def write(args, facts, results, missing, more):
    """Write the page, the CSV, the JSON and the plot."""
    lines = pages.results_head(args.memory)
    lines += [pages.table_line(result, args.memory) for result in results]
    lines += pages.out_of_memory_lines(missing)
    lines += ['', f'![speed-up]({Path(args.out).name}.png)', *more]
    baseline = args.baseline and Path(args.baseline).stem
    title = f'Speed compared with {baseline}' if baseline else TITLE
    text = pages.page(title, args.setting.words(args.batch), facts, lines)
    fitted = pages.exponents(results)
    growth = dict(exponents=fitted) if fitted else {}
    entries = dict(batches=args.batch, **growth)
    records = [result.record() for result in results]
    pages.write_results(
        args.out, text, args.setting, facts, records, **entries
    )
    draw_speed_up(results, f'{args.out}.png')


def main(args):
    torch.set_num_threads(args.setting.threads)
    torch.manual_seed(0)
    command = ['python', 'tools/benchmark/throughput.py', *sys.argv[1:]]
    facts = machine(args.setting, shlex.join(command))
    if args.backend == 'onnx':
        facts['versions'] += f', ONNX Runtime {version("onnxruntime")}'
    words = args.setting.words(args.batch)
    print(words, '', *pages.machine_lines(facts), '', sep='\n')
    results, missing = [], []
    for result in measure(args, missing):
        results.append(result)
        if args.out:  # what is there stays, whatever ends the program
            write(args, facts, results, missing, more=[])
    more = pages.exponent_lines(pages.exponents(results))
    if args.profile:
        more += ['', '## Where the time of a forward pass goes', '']
        more += profile(args, results)
    print(*more, sep='\n')
    if args.out and results:
        write(args, facts, results, missing, more)
