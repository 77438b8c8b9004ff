# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""The command that trains with lists of one's own."""

import itertools
import os
import re
import shlex
from pathlib import Path

CONFIG = (
    'configs/few_shot/lf-evit-kr50_deit-tiny-p16_1xb32-20e_custom-224px.py'
)


def training_command(out: Path, num_classes: int, has_test: bool) -> list[str]:
    """Write what to type to train with the lists of a folder, by lines."""
    lines = []
    if not re.fullmatch(r'[\w./-]*[a-zA-Z_/][\w./-]*', str(out)):
        # --cfg-options drops blanks and splits at commas
        target = out.resolve()
        out = _free_link(target, re.sub(r'[^\w.-]', '_', target.name))
        link = f'mkdir -p data && ln -s {shlex.quote(str(target))} {out}'
        lines = [] if out.exists() else [link]
    options = [f'model.head.num_classes={num_classes}']
    for name in ('train', 'val', 'test'):
        loader = f'{name}_dataloader.dataset'
        options.append(f'{loader}.data_root={out}')
        options.append(f'{loader}.classes={out / "classes.txt"}')
    if has_test:
        options.append('test_dataloader.dataset.ann_file=test.txt')
    command = [f'python tools/train.py {CONFIG} --cfg-options', *options]
    return [*lines, ' \\\n    '.join(command)]


def _free_link(target: Path, name: str) -> Path:
    """A place in ``data`` for a link that takes no other folder's name."""
    more = (f'{name}_{n}' for n in itertools.count(2))
    places = (Path('data', name) for name in itertools.chain([name], more))
    return next(
        p for p in places if not os.path.lexists(p) or p.resolve() == target
    )
