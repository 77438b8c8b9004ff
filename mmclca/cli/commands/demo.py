# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""From nothing to a trained, tested and drawn CLCA ViT, on a CPU.

Draws leaves of eight cultivars, trains a small ViT that drops half of its
tokens three times, tests the best checkpoint, and ends with a table. Every
command is printed, and can be run by hand from the folder of the project.
"""

import json
import os
import shlex
import shutil
import subprocess
import sys
import time
from pathlib import Path

from mmclca.utils.lazy import lazy

from .. import Mistake, Parser

benchmark = lazy('mmclca.benchmark')
interleaved = lazy('mmclca.benchmark.interleaved')
benchmark_steps = lazy('mmclca.benchmark.steps')
loading = lazy('mmclca.checkpoints.loading')
batches = lazy('mmclca.datasets.batches')
cost = lazy('mmclca.evaluation.cost')
model_index = lazy('mmclca.model_index')
mmclca_models = lazy('mmclca.models')
visualization = lazy('mmclca.visualization')
config = lazy('mmengine.config')
registry = lazy('mmengine.registry')
mmpretrain_registry = lazy('mmpretrain.registry')

CONFIG = (
    'configs/clca/'
    'clca-evit-kr50_vit-mini-p14_1xb32-24e_synthetic-leaves-112px.py'
)
TITLES = {
    'CLCA': 'CLCA ViT, EViT with keep rate 0.5',
    'plain': 'the same ViT with all its tokens',
}
DRAWN = (0, 2, 4, 6)  # classes whose first test leaf is drawn


def parse_args():
    parser = Parser(description=__doc__)
    parser.add(
        '--work-dir',
        'folder for results, which a later demo empties',
        'work_dirs/demo',
    )
    parser.add('--seed', 'of leaves, weights and training', 1)
    parser.add(
        '--cfg-options',
        'passed on to training and testing',
        [],
        nargs='+',
        metavar='KEY=VALUE',
    )
    return parser.parse_args()


def make_empty(folder):
    """Remove what an earlier demo left; refuse to touch other files."""
    mark = folder / 'made_by_demo'
    if folder.exists() and any(folder.iterdir()) and not mark.exists():
        raise Mistake(
            f'{folder} is not empty, and not from an earlier demo: name '
            'another folder with --work-dir'
        )
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    mark.touch()


def run(*command):
    """Run a tool of this project; print it as one would type it."""
    print(f'\n$ python {shlex.join(command)}', flush=True)
    subprocess.run([sys.executable, *command], check=True)


def draw_data(folder):
    run(
        'tools/dataset_converters/synthetic_leaves.py',
        str(folder),
        *('--per-class', '220', '--size', '160', '--jobs', '2'),
        *('--val-fraction', '0.15', '--test-fraction', '0.15'),
    )


def train_and_test(work_dir, options):
    """Train, then test the best checkpoint; its path and its top-1."""
    options = ['--work-dir', str(work_dir), '--cfg-options', *options]
    run('tools/train.py', CONFIG, *options)
    (best,) = work_dir.glob('best_*.pth')
    metrics = work_dir / 'test.json'
    out = ['--out', str(metrics), '--out-item', 'metrics']
    run('tools/test.py', CONFIG, str(best), *out, *options)
    return best, json.loads(metrics.read_text())['accuracy/top1']


def draw_test_leaves(model, dataset, out):
    """Draw which patches survive each stage on four test leaves."""
    labels = dataset.get_gt_labels().tolist()
    samples = [dataset[labels.index(label)] for label in DRAWN]
    model.eval()
    views = [
        batches.view_of_input(model, dataset.CLASSES[label], sample['inputs'])
        for label, sample in zip(DRAWN, samples, strict=True)
    ]
    visualization.draw_survivors(visualization.survivors(model, views), out)


def images_by_class(dataset, most):
    """The first images of each class, by its name."""
    paths = {name: [] for name in dataset.CLASSES}
    for info in map(dataset.get_data_info, range(len(dataset))):
        paths[dataset.CLASSES[info['gt_label']]].append(info['img_path'])
    return {
        name: [visualization.photograph(path) for path in found[:most]]
        for name, found in paths.items()
    }


def draw_pictures(model, dataset, work_dir):
    """Draw the curves, the survivors and the data; the paths written."""
    names = ('curves.png', 'survivors.png', 'leaves.png')
    curves, survivors, leaves = (work_dir / name for name in names)
    (scalars,) = work_dir.glob('*/vis_data/20*.json')
    visualization.draw_curves(
        visualization.read_scalars(scalars), curves, 100 / len(dataset.CLASSES)
    )
    draw_test_leaves(model, dataset, survivors)
    visualization.contact_sheet(images_by_class(dataset, most=6), leaves)
    return curves, survivors, leaves


def images_per_second(models, size):
    """Median speed of each of some models, interleaved."""
    setting = benchmark.Setting(batch=32)
    images = setting.images((size, size))
    steps = {
        k: benchmark_steps.inference_step(v, images, setting)
        for k, v in models.items()
    }
    times = interleaved.median_milliseconds(steps, setting, rounds=15)
    return {name: 32e3 / time for name, time in times.items()}


def table(top1, chance, models, speeds):
    """The figures as lines of text."""
    rows = [
        '                                        top-1     GMACs  images/s',
        f'chance                                 {chance:5.1f} %',
    ]
    for name, model in models.items():
        accuracy = f'{top1:5.1f} %' if name == 'CLCA' else '      -'
        title = TITLES[name]
        rows.append(
            f'{title:<39}{accuracy}{cost.count(model).flops / 1e9:10.3f}'
            f'{speeds[name]:10.0f}'
        )
    return '\n'.join(rows)


def main(args):
    start = time.time()
    os.chdir(model_index.home())
    work_dir = Path(args.work_dir)
    make_empty(work_dir)
    cfg = config.Config.fromfile(CONFIG)
    draw_data(cfg.data_root)
    options = [f'randomness.seed={args.seed}', *args.cfg_options]
    best, top1 = train_and_test(work_dir, options)

    registry.init_default_scope('mmpretrain')
    models = {
        'CLCA': mmpretrain_registry.MODELS.build(cfg.model),
        'plain': mmpretrain_registry.MODELS.build(
            mmclca_models.with_reduction(cfg.model)
        ),
    }
    loading.load_trained(models['CLCA'], str(best))
    test_set = mmpretrain_registry.DATASETS.build(cfg.test_dataloader.dataset)
    pictures = draw_pictures(models['CLCA'], test_set, work_dir)
    speeds = images_per_second(models, cfg.model.backbone.img_size)
    chance = 100 / len(test_set.CLASSES)
    print(f'\n{table(top1, chance, models, speeds)}')
    print(f'\n{len(test_set)} test leaves, seed {args.seed}, {best}')
    print('\n'.join(['pictures:', *map(str, pictures)]))
    print(f'{time.time() - start:.0f} s in all')
