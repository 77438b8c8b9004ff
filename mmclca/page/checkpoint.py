# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from pathlib import Path


def trained_by_demo(root: str | Path) -> Path:
    """The checkpoint that ``make demo`` left behind.

    Args:
        root (str | Path): Folder of the project.

    Raises:
        FileNotFoundError: If there is none; says how to get one.
    """
    folder = Path(root, 'work_dirs', 'demo')
    found = sorted(folder.glob('best_*.pth'), key=lambda p: p.stat().st_mtime)
    if not found:
        raise FileNotFoundError(
            f'no checkpoint was named, and {folder} has none. Train the small '
            'model of the demo, which takes some minutes: make demo. Or name '
            'a checkpoint of your own: python demo/app.py '
            'work_dirs/NAME/best_accuracy_top1_epoch_50.pth'
        )
    return found[-1]
