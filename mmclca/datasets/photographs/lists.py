# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from pathlib import Path

from ..preparation import lists
from .photographs import Photographs


def write_lists(photographs: Photographs, folder: Path) -> dict[str, Path]:
    """Write photographs as lists that mmpretrain's ``CustomDataset`` reads.

    Args:
        photographs (Photographs): Those of no split go to ``train.txt``.
        folder (Path): Where; lists that are there are replaced.

    Returns:
        dict[str, Path]: The files: ``classes`` (a name a line), ``train``,
        and ``val`` and ``test`` where there are such photographs; their lines
        are an absolute path and a label.

    Raises:
        OSError: If they cannot be written.
    """
    folder = Path(folder)
    lines = dict(classes=photographs.classes)
    rows = zip(
        photographs.splits, photographs.paths, photographs.labels, strict=True
    )
    for split, path, label in rows:
        lines.setdefault(split or 'train', []).append(f'{path} {label}')
    files = {name: folder / f'{name}.txt' for name in lines}
    texts = {files[name]: text for name, text in lines.items()}
    lists.write_lists(texts, force=True)
    return files
