# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Pictures drawn by commands: synthetic leaves and the ``make demo`` model."""

import shutil
import sys
from functools import cache, partial
from pathlib import Path
from unittest.mock import patch

CONFIG = (
    'configs/clca/'
    'clca-evit-kr50_vit-mini-p14_1xb32-24e_synthetic-leaves-112px.py'
)
DEMO, DATA = Path('work_dirs/demo'), Path('data/synthetic_leaves')
WORK = Path('work_dirs/pictures')
SHOWN = 'cultivar_02', 'cultivar_05'  # classes, a test leaf of each
METHODS = ('ATC', 'ATS', 'DiffRate', 'DPCKNN', 'EViT', 'KMedoids')
METHODS += ('MCTF', 'PiToMe', 'PPT', 'ToMe', 'TopK')
REDUCER, CACHE = 'model.backbone.reducer.', 'model.backbone.cache=None'


def run(command, arguments):
    """Run a command in this process."""
    from mmclca.cli import run_command

    line = [command, *map(str, arguments)]
    print(f'$ {" ".join(line)}', flush=True)
    with patch.object(sys, 'argv', line):
        run_command(command)


@cache
def demo():
    """Return the ``make demo`` checkpoint; train it if it is not complete."""
    if not (DEMO / 'kept_patches.png').exists():  # written after the training
        run('demo', ['--work-dir', DEMO])
    WORK.mkdir(parents=True, exist_ok=True)
    return max(DEMO.glob('best_*.pth'), key=lambda path: path.stat().st_mtime)


def test_leaf(name):
    """Copy the first test leaf in a class to a file with the class name."""
    from mmclca.utils.files import read_lines

    paths = (line.split()[0] for line in read_lines(DATA / 'test.txt'))
    first = next(path for path in paths if f'/{name}/' in path)
    copy = WORK / f'{name}{Path(first).suffix}'
    return shutil.copy(DATA / first, copy)


def draw(command, arguments):
    """Draw a picture with the demo model."""
    file = WORK / f'{command}.png'
    run(command, [*arguments, '--out', file])
    return file


def stages(method, leaves=SHOWN[:1]):
    """Draw the patches on leaves after each reducer stage."""
    checkpoint = demo()
    # DPC-KNN has parameters missing in the demo checkpoint
    option = ['--pretrained'] if method == 'DPCKNN' else []
    files = CONFIG, *map(test_leaf, leaves), *option, checkpoint
    options = f'{REDUCER}type=mmclca.{method}', CACHE
    return draw('draw-reduction', [*files, '--cfg-options', *options])


def rollout():
    """Draw the attention rollout on two leaves."""
    return draw('vis-rollout', [demo(), *map(test_leaf, SHOWN)])


def confusions():
    """Draw the most confused classes in the validation images."""
    options = '--split', 'val', '--pairs', 3
    return draw('vis-confusions', [CONFIG, demo(), *options])


def tsne():
    """Draw the test images as points, by t-SNE."""
    options = '--checkpoint', demo(), '--work-dir', WORK, '--legend'
    run('vis-tsne', [CONFIG, *options])
    return WORK / 'tsne_pre_logits.png'


PICTURES = dict(
    stages=partial(stages, 'ATC', SHOWN),
    rollout=rollout,
    confusions=confusions,
    tsne=tsne,
)
PICTURES |= {
    f'methods/{method.lower()}': partial(stages, method) for method in METHODS
}
