# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""ONNX Runtime's speed on the CPU beside that of PyTorch.

Each method is exported and timed in turns: PyTorch (eager), ONNX Runtime in
float32, and with 8-bit matrix products. Weights are random.
"""

import argparse
import tempfile
from functools import partial
from pathlib import Path
from statistics import median

import torch

from mmclca.benchmark.candidates import METHODS, PLAIN, Size, candidates_of
from mmclca.benchmark.checks import check_img_size, check_out
from mmclca.benchmark.machine import machine
from mmclca.benchmark.options import (
    CLCA,
    add_arch,
    add_clca,
    command_line,
    keep_rate,
    positive,
)
from mmclca.benchmark.pages import line, machine_lines, page, table_head, write
from mmclca.benchmark.setting import Setting
from mmclca.benchmark.steps import build, inference_step
from mmclca.benchmark.turns import clock_of, seconds_in_turns
from mmclca.deployment import (
    import_onnxruntime,
    onnx_logits,
    quantize,
    write_onnx,
)

EAGER, FLOAT, INT8 = 'eager', 'float32', 'int8'
TITLE = 'ONNX Runtime beside PyTorch on the CPU'
TITLES = (
    *('method', 'keep rate', 'CLCA', 'GMACs', 'PyTorch, images/s'),
    *('ONNX Runtime, images/s', 'speed-up', 'int8, images/s', 'speed-up'),
)


def parse_args():
    parser = argparse.ArgumentParser(description=' '.join(__doc__.split()))
    add_arch(parser)
    parser.add_argument(
        '--methods',
        nargs='+',
        default=[PLAIN, *METHODS],
        choices=[PLAIN, *METHODS],
        metavar='NAME',
        help='of %(choices)s (default: all)',
    )
    parser.add_argument(
        '--keep-rate', type=keep_rate, default=0.5, help='default: %(default)s'
    )
    add_clca(parser, default='yes')
    for name, default, meaning in (
        ('--img-size', 224, 'side of an image, a multiple of 16'),
        ('--batch', 8, 'images in a batch'),
        ('--rounds', 7, 'timed passes of each model, after two others'),
        ('--threads', 1, 'threads'),
    ):
        parser.add_argument(
            name,
            type=positive,
            default=default,
            help=f'{meaning} (default: %(default)s)',
        )
    parser.add_argument('--out', metavar='PREFIX', help='write PREFIX.md')
    args = parser.parse_args()
    check_img_size(parser, args.img_size)
    check_out(parser, args.out, ('md',))
    return args


def steps_of(candidate, setting, folder):
    """A pass of a model in PyTorch and in ONNX Runtime, by name."""
    model = build(candidate, 'cpu').eval()
    size = candidate.size.img_size
    images = setting.images(size)
    files = {name: Path(folder, f'{name}.onnx') for name in (FLOAT, INT8)}
    write_onnx(model, size, files[FLOAT], {})
    quantize(files[FLOAT], files[INT8])
    steps = {EAGER: inference_step(model, images, setting)}
    for name, path in files.items():
        steps[name] = partial(onnx_logits(path, setting.threads), images)
    return steps


def measure(candidate, setting, rounds):
    """The line of a model in the table."""
    with tempfile.TemporaryDirectory() as folder:
        steps = steps_of(candidate, setting, folder)
        seconds = seconds_in_turns(steps, clock_of(setting), rounds)
    eager = seconds[EAGER]
    cells = [f'{setting.batch / median(eager):.1f}']
    for name in (FLOAT, INT8):
        pairs = zip(eager, seconds[name], strict=True)
        cells.append(f'{setting.batch / median(seconds[name]):.1f}')
        cells.append(f'{median(torch_s / s for torch_s, s in pairs):.2f}')
    gmacs = f'{candidate.cost().flops / 1e9:.2f}'
    own = candidate.method, candidate.keep_rate, candidate.clca
    return line([*own, gmacs, *cells])


def main():
    args = parse_args()
    torch.set_num_threads(args.threads)
    torch.manual_seed(0)
    setting = Setting(threads=args.threads, batch=args.batch)
    facts = machine(setting, command_line(__file__))
    facts['versions'] += f', ONNX Runtime {import_onnxruntime().__version__}'
    lines = table_head(TITLES)
    print(*machine_lines(facts), '', *lines, sep='\n', flush=True)
    size = Size.of_arch(args.arch, args.img_size)
    wanted = args.methods, [args.keep_rate], CLCA[args.clca]
    for candidate in candidates_of(size, *wanted):
        lines.append(measure(candidate, setting, args.rounds))
        print(lines[-1], flush=True)
    if args.out:
        write(args.out, dict(md=page(TITLE, setting, facts, lines)))


if __name__ == '__main__':
    main()
