# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Try mmclca in given environments; write the table in docs/install.md.

``python tools/dev/write_version_table.py PYTHON...``: one interpreter per
environment, each with the extras deploy and fit. The table is written anew.
"""

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from marked_text import write_between

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / 'tests'))

from tiny_photos import write_photos, write_weights  # noqa: E402
from tiny_run import write_run  # noqa: E402

PAGE = ROOT / 'docs/install.md'
BEGIN = '<!-- table: write_version_table.py -->\n'
END = '<!-- end of table -->'
SECONDS = 900  # limit of a check
TRAIN = ('tools/train.py', 'tiny.py')
BEST = 'work_dirs/tiny/epoch_2.pth'
VERSIONS = """
import sys
from importlib.metadata import PackageNotFoundError, version
def find(*names):
    for name in names:
        try:
            return f'{name} {version(name)}'
        except PackageNotFoundError:
            pass
number = lambda name: version(name).partition('+')[0]
print('.'.join(map(str, sys.version_info[:2])), number('torch'),
      find('onedl-mmpretrain', 'mmpretrain'), number('timm'),
      number('numpy'), sep='|')
"""
CONFIGS = """
import sys, torch
from pathlib import Path
from mmengine.config import Config
import mmclca.models
from mmclca.errors import Error
from mmclca.registry import MODELS
from mmclca.utils.meta_device import on_meta_device
count, refused = 0, None
for path in sorted(Path(sys.argv[1]).glob('[!_]*/*.py')):
    config = Config.fromfile(path)
    if 'model' in config:
        count += 1
        with on_meta_device():
            try:
                MODELS.build(config.model)
            except Error as error:
                if 'needs timm' not in str(error):
                    raise
                refused = error
assert count > 200, count
sys.exit(refused)
"""
TIMM = """
import torch, mmclca
from timm.models.vision_transformer import VisionTransformer
model = VisionTransformer(
    img_size=32, patch_size=8, embed_dim=24, depth=4, num_heads=2,
    num_classes=5,
).eval()
"""
REDUCE = (
    TIMM
    + """
for method in (None, 'EViT', 'ToMe', 'ATC'):
    reduced = mmclca.reduce_tokens(model, method)
    assert reduced(torch.ones(2, 3, 32, 32)).shape == (2, 5)
"""
)
EXPORT = (
    TIMM
    + """
mmclca.export_onnx(mmclca.reduce_tokens(model, METHOD), 'model.onnx')
"""
)


@dataclass(frozen=True)
class Check:
    """A column of the table.

    Args:
        title (str): Title of the column.
        commands (tuple[tuple[str]]): Arguments of Python, one command after
            the other; tools are given relative to the project.
    """

    title: str
    commands: tuple[tuple[str, ...], ...]


CHECKS = (
    Check('all configs', (('-c', CONFIGS, str(ROOT / 'configs')),)),
    Check(
        'train, resume',
        (
            TRAIN,
            TRAIN + ('--resume', '--cfg-options', 'train_cfg.max_epochs=3'),
        ),
    ),
    Check(
        'test, predict, pictures',
        (
            ('tools/test.py', 'tiny.py', BEST),
            ('-m', 'mmclca', 'predict', BEST, 'data/ash'),
            (
                'tools/visualization/draw_reduction.py',
                'tiny.py',
                BEST,
                'data/ash/0.png',
                '--out',
                'drawn.png',
            ),
        ),
    ),
    Check('`reduce_tokens`', (('-c', REDUCE),)),
    Check(
        '`fit`, predict',
        (
            (
                '-m',
                'mmclca',
                'fit',
                'photographs',
                '--weights',
                'tiny.safetensors',
            ),
            ('-m', 'mmclca', 'predict', 'model', 'photographs/ash'),
        ),
    ),
    Check('ONNX of EViT', (('-c', EXPORT.replace('METHOD', "'EViT'")),)),
    Check('ONNX of ATC', (('-c', EXPORT.replace('METHOD', "'ATC'")),)),
)


def run_check(python: str, check: Check, folder: Path) -> str:
    """Return the cell of a check: yes, no, or the needed version."""
    variables = dict(
        os.environ,
        PYTHONPATH=str(ROOT),
        PYTHONWARNINGS='ignore',
        OMP_NUM_THREADS='1',
    )
    for first, *rest in check.commands:
        tool = str(ROOT / first) if first.startswith('tools/') else first
        run = subprocess.run(
            [python, tool, *rest],
            cwd=folder,
            env=variables,
            capture_output=True,
            text=True,
            timeout=SECONDS,
        )
        if run.returncode:
            needed = re.search(
                r'needs ((?:timm|torch) \S+) or later', run.stderr
            )
            if needed:
                return f'needs {needed[1]}'
            print(run.stderr[-2000:], file=sys.stderr)
            return 'no'
    return 'yes'


def describe_environment(python: str) -> list[str]:
    """Run all checks in an environment; return the cells of its row."""
    run = subprocess.run(
        [python, '-c', VERSIONS], capture_output=True, text=True, check=True
    )
    cells = run.stdout.strip().split('|')
    with TemporaryDirectory() as name:
        folder = Path(name)
        write_run(folder)
        write_photos(folder, 12, size=64)
        write_weights(folder)
        for check in CHECKS:
            cells.append(run_check(python, check, folder))
            print(*cells[:4], check.title, cells[-1], flush=True)
    return cells


def main(pythons: list[str]) -> None:
    """Write the table."""
    titles = ['Python', 'PyTorch', 'MMPretrain', 'timm', 'NumPy']
    titles += [check.title for check in CHECKS]
    rows = [titles, ['---'] * len(titles)]
    rows += [describe_environment(python) for python in pythons]
    lines = ['| ' + ' | '.join(row) + ' |\n' for row in rows]
    write_between(PAGE, BEGIN, END, ''.join(lines))


if __name__ == '__main__':
    main(sys.argv[1:])
