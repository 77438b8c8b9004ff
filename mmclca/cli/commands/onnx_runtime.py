# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""What ``tools/benchmark/onnx_runtime.py`` does."""

import tempfile
from functools import partial
from importlib.metadata import version
from pathlib import Path
from statistics import median

from mmclca.benchmark.candidates import Size, candidates_of
from mmclca.benchmark.interleaved import clock_of, interleaved_seconds
from mmclca.benchmark.pages import line, machine_lines, page, table_head
from mmclca.benchmark.setting import Setting
from mmclca.benchmark.steps import build, inference_step
from mmclca.deployment import onnx_logits, quantize, write_onnx
from mmclca.utils.extras import require

from .. import plain_errors
from ..benchmark import CLCA, begin

EAGER, FLOAT, INT8 = 'eager', 'float32', 'int8'
TITLE = 'ONNX Runtime beside PyTorch on the CPU'
TITLES = (
    *('method', 'keep rate', 'CLCA', 'GMACs', 'PyTorch, images/s'),
    *('ONNX Runtime, images/s', 'speed-up', 'int8, images/s', 'speed-up'),
)


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
        seconds = interleaved_seconds(steps, clock_of(setting), rounds)
    eager = seconds[EAGER]
    cells = [f'{setting.batch / median(eager):.1f}']
    for name in (FLOAT, INT8):
        pairs = zip(eager, seconds[name], strict=True)
        cells.append(f'{setting.batch / median(seconds[name]):.1f}')
        cells.append(f'{median(torch_s / s for torch_s, s in pairs):.2f}')
    gmacs = f'{candidate.cost().flops / 1e9:.2f}'
    own = candidate.method, candidate.keep_rate, candidate.clca
    return line([*own, gmacs, *cells])


def main(args):
    setting = Setting(threads=args.threads, batch=args.batch)
    facts = begin(__file__, setting)
    with plain_errors():
        require('onnx', 'onnxscript', 'onnxruntime', extra='deploy')
    facts['versions'] += f', ONNX Runtime {version("onnxruntime")}'
    lines = table_head(TITLES)
    print(*machine_lines(facts), '', *lines, sep='\n', flush=True)
    size = Size.of_arch(args.arch, args.img_size)
    wanted = args.methods, [args.keep_rate], CLCA[args.clca]
    for candidate in candidates_of(size, *wanted):
        lines.append(measure(candidate, setting, args.rounds))
        print(lines[-1], flush=True)
    if args.out:
        text = page(TITLE, setting.words(), facts, lines)
        Path(f'{args.out}.md').write_text(text, encoding='utf-8')
