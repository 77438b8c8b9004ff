# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Find the checkpoint to resume a run from."""

import re
import warnings
from collections.abc import Iterable
from pathlib import Path

from mmengine.config import Config
from mmengine.logging import print_log

from .error import CheckpointError
from .opening import load_from_file

# checkpoint names in training, not published ones
NAMES = [re.compile(rf'{unit}_(\d+)\.pth') for unit in ('epoch', 'iter')]


def newest_checkpoint(work_dir: Path) -> tuple[str | None, int]:
    """Return the newest complete checkpoint of a run and its iterations.

    It is the one named in ``last_checkpoint``, or a later one with more
    iterations: a run may be killed before the name is written. Older files
    are ignored, as they may belong to another run. Files that cannot be
    opened are skipped with a warning.

    Args:
        work_dir (Path): Work dir; it may not exist.

    Returns:
        tuple[str | None, int]: Path and iterations; (None, 0) without a
        checkpoint.
    """
    last = _last_checkpoint(work_dir)
    complete = _find_first_complete([last] if last.is_file() else [])
    since = last.stat().st_mtime_ns if complete else 0
    for name in NAMES:
        files = [*last.parent.glob('*')]
        matches = [(name.fullmatch(file.name), file) for file in files]
        numbers = [(int(match[1]), file) for match, file in matches if match]
        complete += _find_first_complete(
            file
            for _, file in sorted(numbers, reverse=True)
            if file != last and file.stat().st_mtime_ns > since
        )
    return max(complete, key=lambda newest: newest[1], default=(None, 0))


def resume(cfg: Config, checkpoint: str | None) -> None:
    """Set the checkpoint that a config resumes from.

    Args:
        cfg (Config): The config, changed in place. In it, ``resume`` without
            ``load_from`` means 'auto'.
        checkpoint (str, optional): A path or URL; 'auto' is the newest
            complete checkpoint in the work dir, or a new run without one.
            None uses the settings in the config.

    Raises:
        FileNotFoundError: If the file does not exist.
        CheckpointError: If it cannot be opened. Both name the newest
            complete checkpoint in the work dir.
    """
    is_auto = cfg.get('resume') and not cfg.get('load_from')
    if checkpoint == 'auto' or (checkpoint is None and is_auto):
        checkpoint, _ = newest_checkpoint(Path(cfg.work_dir))
        if checkpoint is None:
            print_log(f'no checkpoint in {cfg.work_dir}; starting a new run')
            cfg.resume = bool(cfg.get('resume') and not is_auto)
    elif checkpoint is not None:
        _check(checkpoint, Path(cfg.work_dir))
    if checkpoint is not None:
        cfg.resume, cfg.load_from = True, checkpoint
        _set_seed(cfg)


def _set_seed(cfg: Config) -> None:
    """Use the seed of the checkpoint unless the config sets one.

    mmengine would set it after samplers were built with another seed.
    """
    randomness = cfg.get('randomness') or {}
    if randomness.get('seed') is None and '://' not in cfg.load_from:
        checkpoint = load_from_file(cfg.load_from, mapped=True)
        cfg.randomness = dict(randomness, seed=checkpoint.meta.get('seed'))


def _check(checkpoint: str, work_dir: Path) -> None:
    if '://' in checkpoint:  # checked after the download
        return
    try:
        load_from_file(checkpoint)
    except (CheckpointError, FileNotFoundError) as error:
        newest, _ = newest_checkpoint(work_dir)
        advice = f'resume from {newest}' if newest else 'start a new run'
        raise type(error)(f'{error}; {advice}') from None


def _last_checkpoint(work_dir: Path) -> Path:
    """Return the file named in ``last_checkpoint``.

    If the work dir was moved, it is the file in it with the same name.
    """
    note = work_dir / 'last_checkpoint'
    last = note.read_text('utf-8').strip() if note.is_file() else ''
    named = Path(last or 'none')
    return named if named.is_file() else work_dir / named.name


def _find_first_complete(files: Iterable[Path]) -> list[tuple[str, int]]:
    """List the first readable checkpoint and its iterations, or nothing."""
    for file in files:
        try:
            meta = load_from_file(str(file)).get('meta')
        except CheckpointError as error:
            warnings.warn(f'skipped checkpoint: {error}', stacklevel=3)
            continue
        # files with weights only are skipped
        if isinstance(meta, dict) and isinstance(meta.get('iter'), int):
            return [(str(file), meta['iter'])]
    return []
