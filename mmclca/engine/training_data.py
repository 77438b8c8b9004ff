# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Facts about the training data, by which a resumed run notices changes."""

import os
from collections.abc import Iterator
from hashlib import sha256

from mmengine.dataset import InfiniteSampler
from mmengine.dist import get_world_size
from mmengine.runner import IterBasedTrainLoop

from mmclca.checkpoints.checkpoint import get_dict
from mmclca.datasets.seeded_batches import SeededBatches

KEY = 'training_data'  # in ``meta`` of a checkpoint
# values to keep, as a message calls them
FACTS = dict(
    unit='training in',
    batches='batches per epoch',
    batch_size='batch size',
    processes='processes',
    sampler='sampler',
    images='images',
    files='image files or labels',
)
# values with a minimum of 1
COUNTS = ('batches', 'processes', 'images')


def describe_data(runner) -> dict:
    """Describe the batches of a run in plain values.

    Returns:
        dict: The names of ``FACTS``, and whether the sampler is ``endless``.
        ``files`` is a digest of paths, relative to their common folder, and
        labels.
    """
    loader, loop = runner.train_dataloader, runner.train_loop
    sampler = loader.batch_sampler.sampler
    by_iter = isinstance(loop, IterBasedTrainLoop)
    return dict(
        unit='iterations' if by_iter else 'epochs',
        batches=len(loader.batch_sampler),
        # custom batch samplers may lack it
        batch_size=vars(loader.batch_sampler).get('batch_size'),
        processes=get_world_size(),
        sampler=type(sampler).__name__,
        endless=isinstance(sampler, InfiniteSampler),
        images=len(loader.dataset),
        files=_digest_files(loader.dataset),
    )


def _digest_files(dataset) -> str:
    """Return a digest of file names and labels; moved folders keep theirs."""
    paths = [*_list_files(dataset)]
    start = len(os.path.commonprefix([path for path, _ in paths]))
    digest = sha256()
    for path, label in paths:
        digest.update(f'{path[start:]}\n{label}\n'.encode(errors='replace'))
    return digest.hexdigest()[:16]


def _list_files(dataset) -> Iterator[tuple[str, object]]:
    """Yield path and label per image; images in memory have path ''."""
    if not hasattr(dataset, 'get_data_info'):  # not an OpenMMLab dataset
        return
    for i in range(len(dataset)):
        info = dataset.get_data_info(i)
        yield str(info.get('img_path', '')), info.get('gt_label')


def list_changes(stored: dict, now: dict) -> list[str]:
    """Describe the differing values, with both values."""
    changed = [name for name in FACTS if stored.get(name) != now[name]]
    if 'images' in changed:  # the files then differ, too
        changed = [name for name in changed if name != 'files']
    return [
        f'other {FACTS[name]}'
        if name == 'files'
        else f'{FACTS[name]} {stored.get(name)!s:.40}, now {now[name]}'
        for name in changed
    ]


def read_training_data(
    checkpoint: dict, now: dict, epoch: int, iteration: int
) -> dict:
    """Return the description in a checkpoint, with ``passes`` and ``start``.

    A checkpoint without one, written by another program, gets that of
    ``now``, and its own number of batches per epoch if known.
    """
    stored = get_dict(get_dict(checkpoint, 'meta'), KEY)
    if _is_valid(stored, iteration):
        return stored
    batches, passes = now['batches'], epoch
    if now['unit'] == 'epochs':
        info = get_dict(get_dict(checkpoint, 'message_hub'), 'runtime_info')
        epochs, steps = info.get('max_epochs'), info.get('max_iters')
        are_integers = isinstance(epochs, int) and isinstance(steps, int)
        if are_integers and epochs > 0:
            batches = steps // epochs or batches
    elif not now['endless']:
        passes = iteration // batches
    start = passes * batches
    if not (now['endless'] or 0 <= iteration - start <= batches):
        batches, start = 'unknown', iteration
    return dict(now, batches=batches, passes=passes, start=start)


def _is_valid(stored: dict, iteration: int) -> bool:
    """Return whether the numbers in a file of any origin make sense."""
    limits = dict.fromkeys(COUNTS, 1) | dict(passes=0, start=0)
    numbers = {name: stored.get(name) for name in limits}
    has_types = isinstance(stored.get('unit'), str) and (
        isinstance(stored.get('batch_size', ''), int | None)
        and all(isinstance(x, int) for x in numbers.values())
    )
    return has_types and (
        all(numbers[name] >= least for name, least in limits.items())
        and numbers['start'] <= iteration
    )


def find_start(stored: dict, now: dict, iteration: int) -> tuple[int, int]:
    """Return the pass to resume in, and the iteration at its beginning.

    Without changes, both are as in the checkpoint. With changes, the
    interrupted pass begins at ``iteration``. A completed one is not repeated.
    """
    passes, start = stored['passes'], stored['start']
    changed, steps = bool(list_changes(stored, now)), iteration - start
    same_unit = stored['unit'] == now['unit']
    ended = int(same_unit and steps == stored['batches'])
    if now['unit'] == 'epochs':
        # a completed epoch remains, without steps, for the hooks at its end
        skipped = ended * now['batches']
        return passes, iteration - skipped if changed else start
    if now['endless']:
        ended = steps * count_images_per_step(stored) // stored['images']
    if changed or (ended and not now['endless']):
        return passes + ended, iteration
    return passes, start


def count_images_per_step(data: dict) -> int:
    """Return the images per iteration of all processes."""
    return (data['batch_size'] or 1) * data['processes']


def count_epochs(runner) -> float:
    """Return the number of passes over the training data, with fractions."""
    batches = runner.train_dataloader.batch_sampler
    if isinstance(batches, SeededBatches):
        steps = runner.iter - batches.start
        return batches.passes + steps / len(batches)
    return runner.iter / len(batches)
