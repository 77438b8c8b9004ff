# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Measure multiply-accumulates, speed, efficiency (speed-up divided by the MAC
ratio) and peak memory of inference or training steps. Configs, architectures,
methods, keep rates and image sizes are timed alternately with the plain ViT of
timm or another baseline. Several image sizes show the growth with the pixels.

``python tools/research/compare_speed.py --configs CONFIG``
"""

import argparse
import shlex
import sys
from contextlib import redirect_stdout
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

from mmclca import cli
from mmclca.cli.arguments import check_file, keep_rate, positive, whole
from mmclca.cli.commands.throughput import add_conditions
from mmclca.errors import Error
from mmclca.utils.extras import require
from mmclca.utils.messages import print_safe, suggest_choices

CLCA = dict(no=[False], yes=[True], both=[False, True])
TITLE = 'Speed of token reduction against its FLOPs'


def add_arguments(parser):
    add_models(parser)
    add_setting(parser)
    add_rounds(parser)


def add_models(parser):
    parser.add(
        '--baseline FILE',
        'config of the baseline, also for --methods (default: plain ViT of '
        'timm)',
    )
    parser.add(
        '--configs FILE',
        'configs of classifiers; without --baseline: VisionTransformer or '
        'TokenReductionViT only',
        [],
        nargs='+',
    )
    parser.add(
        '--arch NAME',
        'VisionTransformer architectures (default: deit-small, i.e. '
        'ViT-S/16, or none with --configs)',
        nargs='+',
    )
    parser.add(
        '--img-size PIXELS',
        'image sizes for --arch',
        [224],
        nargs='+',
        type=positive,
    )
    parser.add(
        '--methods NAME',
        'reducers, mmpretrain (its ViT) or none (no reducer) (default: all; '
        'with --configs mmpretrain and none, with --baseline nothing)',
        nargs='*',
    )
    rates = [1.0, 0.7, 0.5, 0.25, 0.1]
    rate_options = dict(nargs='+', type=keep_rate, metavar='RATE')
    parser.add(
        '--keep-rates', 'keep rates of --methods', rates, **rate_options
    )
    meaning = '--methods with cache and CLA head'
    parser.add('--clca', meaning, 'both', choices=['no', 'yes', 'both'])
    parser.flag(
        '--fuse',
        'second measurement with fused parallel branches and affine maps',
    )


def add_setting(parser):
    add_conditions(parser)
    parser.flag(
        '--train',
        'training steps instead of inference: forward, backward, AdamW',
    )
    parser.add(
        '--backend',
        'runtime; onnx adds float32 and 8-bit ONNX Runtime to PyTorch',
        'pytorch',
        choices=['pytorch', 'onnx'],
    )


def add_rounds(parser):
    parser.add('--rounds', 'timed runs per model', 7, type=positive)
    before = 'untimed runs per model'
    parser.add('--warm-up', before, 2, type=whole)
    parser.add_argument(
        '--memory',
        action=argparse.BooleanOptionalAction,
        help='peak memory; not with every --compile mode (default: with '
        '--train if possible)',
    )
    parser.add(
        '--out PREFIX',
        'prefix of the .md, .csv, .json and .png files to write',
    )


def set_defaults(args):
    """Set the defaults depending on other options."""
    from speed import candidates

    if args.arch is None:
        has_networks = args.configs or args.baseline
        args.arch = [] if has_networks else ['deit-small']
    if args.methods is None:
        reducers = [] if args.configs else candidates.REDUCERS
        names = [*candidates.PLAINS, *reducers]
        args.methods = [] if args.baseline else names
    args.batch = list(dict.fromkeys(args.batch))
    args.device = args.device or 'cpu'


def refused_names(args):
    """Yield errors in names and sizes."""
    from mmpretrain.models.backbones import VisionTransformer
    from speed import candidates
    from speed.candidates import Size

    archs = VisionTransformer.arch_zoo
    methods = [*candidates.PLAINS, *candidates.REDUCERS]
    for option, names in dict(arch=sorted(archs), methods=methods).items():
        for name in {*vars(args)[option]} - {*names}:
            yield f'--{option}: {suggest_choices(name, names)}'
    patch = Size.patch_size
    for size in args.img_size:
        if size % patch:
            yield f'--img-size {size}: expected a multiple of {patch}'


def refused_together(args):
    """Yield conflicts between options."""
    if args.fuse and args.train:
        yield '--fuse excludes --train: only inference models can be fused'
    if args.baseline and args.arch:
        yield '--arch excludes --baseline: its baseline is the ViT of timm'
    settings = {
        '--amp': args.amp,
        '--compile': args.compile_mode,
        '--memory': args.memory,
        '--train': args.train,
    }
    unsupported = [option for option, value in settings.items() if value]
    unsupported += [f'--device {args.device}'] * (args.device != 'cpu')
    if args.backend == 'onnx' and unsupported:
        yield (
            '--backend onnx measures float32 inference on the CPU: omit '
            f'{" and ".join(unsupported)}'
        )
    if args.train and min(args.batch) < 2:
        yield '--train --batch 1: BatchNorm in the CLA head needs at least 2'


def build_setting(args):
    """Build the setting; refuse ``--memory`` if it cannot be measured."""
    from speed import memory

    from mmclca.benchmark import Setting

    setting = Setting(
        args.device,
        args.threads,
        min(args.batch),
        args.amp,
        args.compile_mode,
        args.train,
    )
    obstacle = memory.obstacle(setting)
    if args.memory and obstacle:
        raise Error(f'--memory: {obstacle}; omit it')
    if args.memory is None:
        args.memory = args.train and not obstacle
    return setting


def read_config(name, train):
    """Return the classifier in a config file as a candidate."""
    from speed.candidates import read_candidate

    from mmclca.building import config_errors
    from mmclca.configs import open_config, require_settings

    with config_errors(name), redirect_stdout(sys.stderr):
        config = open_config(name)
        require_settings(config, 'model.backbone')
        if train and config.model.get('teacher'):
            raise Error('model.teacher is not supported by --train')
        model = config.model.to_dict()
        return read_candidate(Path(name).stem, model)


def plan(args):
    """Return the models to time per baseline, in order."""
    from speed.candidates import plan

    if args.backend == 'onnx':
        require('onnx', 'onnxscript', 'onnxruntime', extra='deploy')
    return plan(
        [read_config(name, args.train) for name in args.configs],
        args.baseline and read_config(args.baseline, args.train),
        args.arch,
        args.img_size,
        methods=list(dict.fromkeys(args.methods)),
        keep_rates=list(dict.fromkeys(args.keep_rates)),
        clca=CLCA[args.clca],
        fuse=args.fuse,
        onnx=args.backend == 'onnx',
    )


def check(args):
    """Refuse settings that fail only after measurements have begun."""
    set_defaults(args)
    for problem in (*refused_names(args), *refused_together(args)):
        raise Error(problem)
    for suffix in ('md', 'csv', 'json', 'png') if args.out else ():
        check_file(Path(f'{args.out}.{suffix}'))
    return build_setting(args), plan(args)


def measure(args, setting, planned, missing):
    """Measure all models; print each row immediately."""
    from speed import pages
    from speed.comparison import compare

    print('\n'.join(pages.results_head()))
    for batch in args.batch:
        of_batch = replace(setting, batch=batch)
        for result in compare(
            planned, of_batch, args.rounds, args.warm_up, args.memory, missing
        ):
            print(pages.table_line(result), flush=True)
            yield result


def main():
    parser = cli.Parser(__doc__)
    add_arguments(parser)
    args = parser.parse_args()
    import torch
    from speed import pages

    from mmclca.benchmark.steps import describe_machine

    setting, planned = check(args)
    torch.set_num_threads(args.threads)
    torch.manual_seed(0)
    command = ['python', 'tools/research/compare_speed.py', *sys.argv[1:]]
    machine = describe_machine(setting, shlex.join(command))
    if args.backend == 'onnx':
        machine['versions'] += f', ONNX Runtime {version("onnxruntime")}'
    caption = setting.describe(args.batch)
    print('\n'.join([caption, '', *pages.machine_lines(machine), '']))
    title = TITLE
    if args.baseline:
        title = f'Speed compared with {Path(args.baseline).stem}'
    results, missing = [], []

    def write():
        pages.write_comparison(
            args.out, title, setting, args.batch, machine, results, missing
        )

    for result in measure(args, setting, planned, missing):
        results.append(result)
        if args.out:  # results stay if the command is interrupted
            write()
    print('\n'.join(pages.exponent_lines(pages.exponents(results))))
    if args.out and results:  # adds trailing models without enough memory
        write()
        print_safe(f'Saved      {args.out}.md, .csv, .json, .png')


if __name__ == '__main__':
    cli.run(main)
