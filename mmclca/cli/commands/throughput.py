# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Measure multiply-accumulates and speed of classifiers, in turn.

``python tools/benchmark/throughput.py CONFIG --methods EViT --keep-rates 0.5``
"""

from dataclasses import replace
from pathlib import Path

from mmclca.errors import Error
from mmclca.utils.compile_modes import MODES
from mmclca.utils.markdown import format_head, format_row
from mmclca.utils.messages import print_safe, warn

from ..arguments import check_file, device, keep_rate, positive, whole
from ..listing import Listing

LISTING = Listing('analyze', 'measure speed and GMACs', 'benchmarks/README')

NONE = 'none'  # method name for the full ViT
CLCA = dict(no=[False], yes=[True], both=[False, True])
RUNTIMES = ('pytorch', 'fused', 'onnx', 'onnx-int8')
AT_ONCE = 6  # models in memory, besides the baseline
COLUMNS = (
    'model',
    'reduction',
    'runtime',
    'batch',
    'GMACs',
    'images/s',
    'speed-up',
    'quartiles',
)


def add_arguments(parser):
    parser.add('configs', 'configs; the first is the baseline', nargs='+')
    parser.add(
        '--methods NAME', 'reducers, or none, to measure, too', [], nargs='+'
    )
    parser.add(
        '--keep-rates RATE',
        'keep rates of --methods',
        [0.5],
        nargs='+',
        type=keep_rate,
    )
    parser.add(
        '--clca', '--methods with cache and CLA head', 'no', choices=[*CLCA]
    )
    parser.add(
        '--runtimes NAME',
        'pytorch; fused: PyTorch with fused branches and affine maps; onnx, '
        'onnx-int8: ONNX Runtime',
        ['pytorch'],
        nargs='+',
        choices=RUNTIMES,
    )
    add_conditions(parser)
    parser.add('--rounds', 'timed runs per model', 7, type=positive)
    parser.add('--warm-up', 'untimed runs per model', 2, type=whole)
    parser.add('--out', 'CSV file to write', type=Path)


def add_conditions(parser):
    """Add the options of a :class:`Setting`."""
    device_names = 'cpu, cuda or cuda:1 (default: cpu)'
    parser.add('--device', device_names, type=device)
    parser.add('--threads', 'CPU threads', 1, type=positive)
    parser.add('--batch', 'batch sizes', [8], type=positive, nargs='+')
    parser.add(
        '--amp',
        'automatic mixed precision (default: float32)',
        choices=['bf16', 'fp16'],
    )
    parser.add(
        '--compile MODE',
        'torch.compile mode: %(choices)s (default: eager)',
        nargs='?',
        const='default',
        choices=MODES,
    )
    parser.flag(
        '--train',
        'training steps instead of inference: forward, backward, AdamW',
    )


def check_conflicts(args):
    """Refuse options that exclude each other."""
    if args.train and min(args.batch) < 2:
        raise Error(
            '--train --batch 1: BatchNorm in the CLA head needs at least 2'
        )
    others = sorted({*args.runtimes} - {'pytorch'})
    if args.train and others:
        raise Error(f'--train excludes --runtimes {others[0]}')
    options = dict(amp=args.amp, compile=args.compile)
    options['device'] = args.device != 'cpu'
    for name, value in options.items():
        if value and any('onnx' in runtime for runtime in args.runtimes):
            raise Error(
                '--runtimes onnx measures float32 inference on the CPU: omit '
                f'--{name}'
            )


def read_classifier(path, train):
    """Return the classifier in a config file."""
    from mmclca.building import config_errors
    from mmclca.configs import open_config, require_settings

    with config_errors(path):
        config = open_config(path)
        require_settings(config, 'model.backbone', 'model.head')
        if train and config.model.get('teacher'):
            raise Error('model.teacher is not supported by --train')
        return config.model.to_dict()


def read_candidates(args):
    """Return the candidates, and check that they can be built."""
    from mmclca.benchmark import list_candidates
    from mmclca.models import Variant
    from mmclca.utils.extras import require

    if {'onnx', 'onnx-int8'} & {*args.runtimes}:
        require('onnx', 'onnxscript', 'onnxruntime', extra='deploy')
    variants = [
        Variant(method, rate, cache=clca, cla=clca)
        for method in dict.fromkeys(args.methods)
        for rate in dict.fromkeys(args.keep_rates)
        for clca in CLCA[args.clca]
        if method != NONE
    ]
    variants += [Variant()] * (NONE in args.methods)
    titles = [Path(path).stem for path in args.configs]
    if len({*titles}) < len(titles):
        raise Error('two configs have the same name; rename one of the files')
    classifiers = [read_classifier(path, args.train) for path in args.configs]
    configs = dict(zip(titles, classifiers, strict=True))
    runtimes = list(dict.fromkeys(args.runtimes))
    return list_candidates(configs, variants, runtimes)


def count_costs(candidates):
    """Return the GMACs of each candidate; refuse wrong configs at once."""
    from mmclca.building import config_errors
    from mmclca.evaluation.cost import count_config

    gmacs = {}
    for candidate in candidates:
        with config_errors(candidate.title):
            gmacs[candidate] = count_config(candidate.model).flops / 1e9
    return gmacs


def measure(group, gmacs, setting, args):
    """Yield one row per candidate of a group, timed in turn."""
    import numpy as np

    from mmclca.benchmark import interleaved_seconds
    from mmclca.benchmark.steps import make_step

    steps = {x: make_step(x, setting) for x in group}
    seconds = interleaved_seconds(steps, setting, args.rounds, args.warm_up)
    if group[0] not in seconds:
        raise Error('the baseline does not fit into memory; reduce --batch')
    for candidate in group:
        if candidate not in seconds:
            warn(f'{candidate.title}, {candidate.reduction}: out of memory')
            continue
        times = seconds[candidate]
        ratios = np.divide(seconds[group[0]], times)
        low, middle, high = np.percentile(ratios, [25, 50, 75])
        yield [
            candidate.title,
            candidate.reduction,
            candidate.runtime,
            setting.batch,
            f'{gmacs[candidate]:.2f}',
            f'{setting.batch / np.median(times):.4g}',
            f'{middle:.2f}',
            f'{low:.2f}-{high:.2f}',
        ]


def main(args):
    import torch

    from mmclca.benchmark import Setting
    from mmclca.utils.files import write_rows

    args.device = args.device or 'cpu'
    check_conflicts(args)
    if args.out:
        check_file(args.out)
    candidates = read_candidates(args)
    gmacs = count_costs(candidates)
    torch.set_num_threads(args.threads)
    torch.manual_seed(0)
    setting = Setting(
        device=args.device,
        threads=args.threads,
        amp=args.amp,
        compile_mode=args.compile,
        train=args.train,
    )
    print(setting.describe(args.batch), '', *format_head(COLUMNS), sep='\n')
    rows = [COLUMNS]
    for batch in dict.fromkeys(args.batch):
        batch_setting = replace(setting, batch=batch)
        for start in range(0, max(len(candidates) - 1, 1), AT_ONCE):
            others = candidates[1:][start : start + AT_ONCE]
            torch.compiler.reset()  # its number of models is limited
            group = [candidates[0], *others]
            results = measure(group, gmacs, batch_setting, args)
            for n, row in enumerate(results):
                if n or not start:  # the baseline only once
                    print(format_row(row), flush=True)
                    rows.append(row)
    if args.out:
        write_rows(args.out, rows)
        print_safe(f'Saved      {args.out}')
