# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Measure multiply-accumulates and speed of classifiers, in turn.

``python tools/benchmark/throughput.py CONFIG --methods EViT --keep-rates 0.5``
"""

from dataclasses import asdict
from pathlib import Path

from mmclca.errors import Error
from mmclca.utils.compile_modes import MODES
from mmclca.utils.markdown import format_head, format_row
from mmclca.utils.messages import print_safe

from ..arguments import check_file, device, keep_rate, positive
from ..listing import Listing

LISTING = Listing('analyze', 'measure speed and GMACs', 'benchmarks/README')

CLCA = dict(no=[False], yes=[True], both=[False, True])
RUNTIMES = ('pytorch', 'fused', 'onnx', 'onnx-int8')


def add_arguments(parser):
    parser.add('configs', 'configs; the first is the baseline', nargs='+')
    names = 'reducers, or none, to measure, too'
    parser.add('--methods NAME', names, [], nargs='+')
    rates = dict(nargs='+', type=keep_rate, metavar='RATE')
    parser.add('--keep-rates', 'keep rates of --methods', [0.5], **rates)
    clca = '--methods with cache and CLA head'
    parser.add('--clca', clca, 'no', choices=[*CLCA])
    runtimes = (
        'pytorch; fused: PyTorch with fused branches and affine maps; onnx, '
        'onnx-int8: ONNX Runtime'
    )
    choices = dict(nargs='+', choices=RUNTIMES, metavar='NAME')
    parser.add('--runtimes', runtimes, ['pytorch'], **choices)
    add_conditions(parser)
    parser.add('--rounds', 'timed runs per model', 7, type=positive)
    parser.share('--out')


def add_conditions(parser):
    """Add the options of a :class:`Setting`."""
    device_names = 'cpu, cuda or cuda:1 (default: cpu)'
    parser.add('--device', device_names, type=device)
    parser.add('--threads', 'CPU threads', 1, type=positive)
    parser.add('--batch', 'batch sizes', [8], type=positive, nargs='+')
    amp = 'automatic mixed precision (default: float32)'
    parser.add('--amp', amp, choices=['bf16', 'fp16'])
    parser.add(
        '--compile MODE',
        'torch.compile mode: %(choices)s (default: eager)',
        dest='compile_mode',
        nargs='?',
        const='default',
        choices=MODES,
    )


def read_classifiers(paths):
    """Return the classifiers in config files, by file name."""
    from mmclca.building import config_errors
    from mmclca.configs import open_config, require_settings

    classifiers = {}
    for path in paths:
        if Path(path).stem in classifiers:
            raise Error('two configs have the same name; rename one of them')
        with config_errors(path):
            config = open_config(path)
            require_settings(config, 'model.backbone', 'model.head')
            classifiers[Path(path).stem] = config.model.to_dict()
    return classifiers


def main(args):
    import torch

    from mmclca import benchmark
    from mmclca.apis.output import dump_json
    from mmclca.benchmark.throughput import COLUMNS
    from mmclca.utils.extras import require
    from mmclca.utils.files import write_rows

    if args.out:
        check_file(args.out)
    if {'onnx', 'onnx-int8'} & {*args.runtimes}:
        require('onnx', 'onnxscript', 'onnxruntime', extra='deploy')
    setting = benchmark.Setting(
        device=args.device or 'cpu',
        threads=args.threads,
        amp=args.amp,
        compile_mode=args.compile_mode,
    )
    variants = benchmark.combine_methods(
        args.methods, args.keep_rates, CLCA[args.clca]
    )
    candidates = benchmark.list_candidates(
        read_classifiers(args.configs), variants, args.runtimes
    )
    torch.set_num_threads(args.threads)
    torch.manual_seed(0)
    measured = benchmark.measure_throughput(
        candidates, setting, args.batch, args.rounds
    )
    print(setting.describe(args.batch), '', *format_head(COLUMNS), sep='\n')
    results = []
    for result in measured:
        print(format_row(result.format_cells()), flush=True)
        results.append(result)
    if args.out and args.out.suffix == '.json':
        dump_json([asdict(result) for result in results], args.out)
    elif args.out:
        rows = [result.format_cells() for result in results]
        write_rows(args.out, [COLUMNS, *rows])
    if args.out:
        print_safe(f'Saved      {args.out}')
