# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Measure the efficiency of the models of ``fit`` with one photo at a time.

Efficiency is the speed-up over the full ViT with the same kind of head,
divided by the ratio of their GMACs. Models take turns, in CPU time of one
thread, and the least time of each photo counts. Photos are required because
the rounds of ATC depend on them.

``python tools/research/one_photo.py --weights FILE --photos FILE FILE``
"""

import json
import shlex
import sys
import time
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from statistics import mean

import torch
from mmengine.dataset import Compose
from mmengine.registry import init_default_scope

from mmclca import cli
from mmclca.benchmark.steps import (
    Setting,
    describe_machine,
    inference_step,
    onnx_step,
)
from mmclca.checkpoints.load import load
from mmclca.evaluation.cost import count_config
from mmclca.fitting.candidates import get_measured_accuracies
from mmclca.fitting.model_config import build_config
from mmclca.fitting.weights import find_weights
from mmclca.registry import MODELS
from mmclca.utils.files import replace_text

SIDE, CLASSES = 224, 20
ONNX, INT8, COMPILED = 'ONNX', 'ONNX int8', 'compiled'
SETTING = Setting(batch=1, compile_mode='default')
# heads: that of ``fit`` over several layers, and a linear one after the last
HEADS = dict(layers={}, linear=dict(out_type=None, layers=None))


def build_configs(weights, heads):
    """Map head and method, None for the full ViT, to configs."""
    pretrained = find_weights(weights)
    variants = [
        x for x in get_measured_accuracies(pretrained) if x.img_size == SIDE
    ]
    return {
        (head, x.method): build_config(
            pretrained, replace(x, **HEADS[head]), CLASSES
        )
        for head in heads
        for x in sorted(variants, key=lambda x: x.method or '')
    }


def build_step(config, weights, runtime, image):
    """Build a model and return its pass over ``image``."""
    model = MODELS.build(config.model).eval()
    load(model, weights, strict=False)
    if runtime == COMPILED:
        return inference_step(model, image, SETTING)
    return onnx_step(model, image, SETTING, runtime == INT8)


def read(config, photo):
    """Return a photo as the input of a model, (1, 3, H, W)."""
    data = Compose(config.test_dataloader.dataset.pipeline)
    data = dict(inputs=[data(dict(img_path=photo))['inputs']])
    processor = MODELS.build(
        dict(config.model.data_preprocessor, type='ClsDataPreprocessor')
    )
    return processor(data)['inputs']


def measure(steps, image, photos, rounds):
    """Return the least milliseconds of each model, mean over the photos."""
    times = {key: [[] for _ in photos] for key in steps}
    for _ in range(2 + rounds):
        for number, photo in enumerate(photos):
            image.copy_(photo)
            for key, step in steps.items():
                start = time.thread_time()
                step()
                spent = time.thread_time() - start
                times[key][number].append(1e3 * spent)
    return {key: mean(min(x[2:]) for x in each) for key, each in times.items()}


def make_rows(runtime, times, gmacs):
    """Yield a row of the table for each model."""
    for (head, method), spent in times.items():
        full = head, None
        speed_up = times[full] / spent
        ratio = gmacs[full] / gmacs[head, method]
        yield dict(
            runtime=runtime,
            head=head,
            method=method or 'full ViT',
            gmacs=gmacs[head, method],
            ms=spent,
            speed_up=speed_up,
            gmacs_ratio=ratio,
            efficiency=speed_up / ratio,
        )


def write(path, results):
    """Write results in the form of throughput.py."""
    command = shlex.join(['python', *sys.argv])
    columns = describe_machine(SETTING, command)
    columns['versions'] += f', ONNX Runtime {version("onnxruntime")}'
    setting = dict(batch=1, threads=1, cpu_time=True)
    content = dict(setting=setting, machine=columns, results=results)
    replace_text(path, json.dumps(content, indent=1))


def main():
    parser = cli.Parser(description=__doc__)
    parser.add('--weights FILE', 'DeiT-Tiny or ViT-Tiny (default: of fit)')
    parser.add('--photos FILE', 'photos', nargs='+', required=True)
    runtimes = ONNX, INT8, COMPILED
    parser.add('--runtimes', 'runtimes', runtimes, nargs='+', choices=runtimes)
    parser.add('--heads', 'heads', [*HEADS], nargs='+', choices=HEADS)
    parser.add('--rounds', 'timed runs per model and photo', 30, type=int)
    parser.add('--out FILE', 'JSON file to write', type=Path)
    args = parser.parse_args()
    init_default_scope('mmpretrain')
    torch.set_num_threads(1)
    configs = build_configs(args.weights, args.heads)
    source = find_weights(args.weights).source
    gmacs = {k: count_config(x.model).flops / 1e9 for k, x in configs.items()}
    photos = [read(next(iter(configs.values())), x) for x in args.photos]
    image, results = torch.empty_like(photos[0]), []
    for runtime in args.runtimes:
        steps = {
            key: build_step(config, source, runtime, image)
            for key, config in configs.items()
        }
        times = measure(steps, image, photos, args.rounds)
        for row in make_rows(runtime, times, gmacs):
            results.append(row)
            cells = [
                f'{x:.3f}' if isinstance(x, float) else str(x)
                for x in row.values()
            ]
            print('\t'.join(cells), flush=True)
        if args.out:  # after each runtime, in case of an interruption
            write(args.out, results)


if __name__ == '__main__':
    cli.run(main)
