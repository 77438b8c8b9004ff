# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Time the nodes in exported ``fit`` models, one photo at a time.

Prints Markdown tables for ONNX Runtime on the CPU: efficiency as in
``one_photo.py``, and microseconds by network part and by operator. Models take
turns, and the least time per photo or node counts: CPU time with one thread,
wall-clock time with several.

``python tools/research/onnx_nodes.py --weights FILE --photos FILE FILE``
"""

import json
import time
from bisect import bisect_right
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from tempfile import TemporaryDirectory

import torch
from mmengine.registry import init_default_scope
from one_photo import SIDE, build_configs, read

from mmclca import cli
from mmclca.checkpoints.load import load
from mmclca.deployment import write_onnx
from mmclca.evaluation.cost import count_config
from mmclca.fitting.weights import find_weights
from mmclca.registry import MODELS

INPUT, FULL = 'images', 'full ViT'
START, LOOP, HEAD = 'patches', 'loops', 'pooling and head'
POOLED = 3  # CLS, average and deviation, which the head normalizes
WARM_UP = 3


@dataclass(frozen=True)
class Node:
    """Node in a graph.

    Args:
        operator (str): ONNX operator.
        part (str): Network part: the token number in the last norm before the
            node, or ``START``, ``LOOP`` or ``HEAD``.
        microseconds (float): Least time.
    """

    operator: str
    part: str
    microseconds: float


def write_models(configs, weights, folder):
    """Export each model to ``folder`` unless its file is there."""
    paths = {}
    for (_, method), config in configs.items():
        name = method or FULL
        stem = f'{Path(weights).stem}_{name}'.replace(' ', '_')
        paths[name] = folder / f'{stem}.onnx'
        if not paths[name].exists():
            model = MODELS.build(config.model).eval()
            load(model, weights, strict=False)
            write_onnx(model, (SIDE, SIDE), paths[name], {})
    return paths


def open_sessions(paths, threads, profiles=None):
    """Open files in ONNX Runtime; write profiles to a folder, if any."""
    import onnxruntime

    sessions = {}
    for name, path in paths.items():
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.log_severity_level = 3  # errors
        if profiles is not None:
            options.enable_profiling = True
            options.profile_file_prefix = str(Path(profiles, path.stem))
        sessions[name] = onnxruntime.InferenceSession(
            str(path), options, providers=['CPUExecutionProvider']
        )
    return sessions


def measure(sessions, photos, rounds, clock):
    """Return the least milliseconds per model, mean over the photos."""
    times = {name: [[] for _ in photos] for name in sessions}
    for _ in range(WARM_UP + rounds):
        for number, photo in enumerate(photos):
            for name, session in sessions.items():
                start = clock()
                session.run(None, {INPUT: photo})
                times[name][number].append(1e3 * (clock() - start))
    return {
        name: mean(min(x[WARM_UP:]) for x in each)
        for name, each in times.items()
    }


def profile(path, photo, rounds):
    """Run a photo and return its nodes, in order."""
    with TemporaryDirectory() as folder:
        (session,) = open_sessions({path: path}, 1, folder).values()
        for _ in range(WARM_UP + rounds):
            session.run(None, {INPUT: photo})
        events = json.loads(Path(session.end_profiling()).read_text('utf-8'))
    return read_nodes(events)


def read_nodes(events):
    """Read profile events as nodes, with the least time over all runs."""
    starts = sorted(x['ts'] for x in events if x['name'] == 'model_run')
    runs = [[] for _ in starts]
    for event in sorted(events, key=lambda x: x['ts']):
        if event['name'].endswith('_kernel_time'):
            runs[bisect_right(starts, event['ts']) - 1].append(event)
    runs = runs[WARM_UP:]
    nodes = []
    for part, *same in zip(list_parts(runs[0]), *runs, strict=True):
        operator = same[0]['args']['op_name']
        if operator != 'Loop':  # includes its nodes
            least = min(x['dur'] for x in same)
            nodes.append(Node(operator, part, least))
    return nodes


def list_parts(run):
    """Yield the network part for each event in a run."""
    part, end = START, 0
    for event in run:
        operator = event['args']['op_name']
        if operator == 'Loop':
            end = event['ts'] + event['dur']
        if operator == 'LayerNormalization':
            shape = next(iter(event['args']['output_type_shape'][0].values()))
            tokens = shape[1]
            part = HEAD if tokens == POOLED else f'{tokens} tokens'
        yield LOOP if event['ts'] < end else part


def print_efficiency(times, gmacs):
    """Print a table: one row per model and thread number."""
    print('| threads | model | ms | speed-up | GMACs ratio | efficiency |')
    print('| --- | --- | --- | --- | --- | --- |')
    for threads, each in times.items():
        for name, spent in each.items():
            speed_up = each[FULL] / spent
            ratio = gmacs[FULL] / gmacs[name]
            cells = f'{spent:.2f} | {speed_up:.2f} | {ratio:.2f}'
            print(f'| {threads} | {name} | {cells} | {speed_up / ratio:.3f} |')


def print_nodes(nodes, field):
    """Print nodes and microseconds per model by a ``Node`` field."""
    sums, counts = {}, {}
    for name, each in nodes.items():
        counts[name] = Counter(getattr(x, field) for x in each)
        sums[name] = Counter()
        for node in each:
            sums[name][getattr(node, field)] += node.microseconds
    rows = sum(sums.values(), Counter())
    if field == 'operator':
        rows = dict(rows.most_common())
    print(f'\n| {field} | ' + ' | '.join(f'{x}: nodes | us' for x in nodes))
    print('| --- ' * (1 + 2 * len(nodes)) + '|')
    for row in (*rows, 'all'):
        cells = [row]
        for name in nodes:
            each = counts[name], sums[name]
            cells += [
                f'{x.total() if row == "all" else x[row]:.0f}' for x in each
            ]
        print('| ' + ' | '.join(cells) + ' |')


def main():
    parser = cli.Parser(description=__doc__)
    parser.add('--weights FILE', 'DeiT-Tiny or ViT-Tiny (default: of fit)')
    parser.add('--photos FILE', 'photos', nargs='+', required=True)
    folder = Path('work_dirs/onnx_nodes')
    parser.add('--folder DIR', 'exported models', folder, type=Path)
    parser.add('--threads N', 'numbers of threads', [1], nargs='+', type=int)
    parser.add('--rounds', 'timed runs per model and photo', 30, type=int)
    args = parser.parse_args()
    init_default_scope('mmpretrain')
    torch.set_num_threads(1)
    configs = build_configs(args.weights, ['layers'])
    gmacs = {
        method or FULL: count_config(config.model).flops
        for (_, method), config in configs.items()
    }
    args.folder.mkdir(parents=True, exist_ok=True)
    source = find_weights(args.weights).source
    paths = write_models(configs, source, args.folder)
    config = next(iter(configs.values()))
    photos = [read(config, x).numpy() for x in args.photos]
    times = {}
    for threads in args.threads:
        clock = time.thread_time if threads == 1 else time.perf_counter
        sessions = open_sessions(paths, threads)
        times[threads] = measure(sessions, photos, args.rounds, clock)
    print_efficiency(times, gmacs)
    nodes = {
        name: profile(path, photos[0], args.rounds)
        for name, path in paths.items()
    }
    for field in ('part', 'operator'):
        print_nodes(nodes, field)


if __name__ == '__main__':
    cli.run(main)
