# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""What ``tools/dataset_converters/split_folder.py`` does."""

import itertools
import os
import re
import shlex
import zlib
from collections import Counter
from pathlib import Path

import numpy as np
from mmengine.utils import track_parallel_progress, track_progress
from PIL import Image

from mmclca.datasets.image_files import IMAGE_SUFFIXES, find_problem
from mmclca.datasets.splits import check_fractions, split_sizes

from .. import plain_errors

CONFIG = 'configs/clca/clca-evit-kr25_deit-tiny-p16_1xb32-50e_custom-224px.py'
SPLITS = ('train', 'val', 'test')
NAMES = ('classes.txt', *(f'{name}.txt' for name in SPLITS))


def find_files(folder):
    """Walk through a folder, links followed and hidden files left out."""
    for place, folders, files in os.walk(folder, followlinks=True):
        folders[:] = sorted(f for f in folders if not f.startswith('.'))
        for name in sorted(files):
            if not name.startswith('.'):
                yield Path(place, name)


def find_classes(folder):
    """Find the images of each class, and say what is left aside.

    Args:
        folder (Path): Has a folder a class.

    Returns:
        dict[str, list[Path]]: Images by class, both sorted by name.

    Raises:
        ValueError: If there are not at least two classes with images.
    """
    if not folder.is_dir():
        raise ValueError(f'{folder} is not a folder')
    classes, ignored = {}, Counter()
    for file in find_files(folder):
        parts = file.relative_to(folder).parts
        if len(parts) == 1:
            ignored['beside the class folders'] += is_image(file)
        elif is_image(file):
            classes.setdefault(parts[0], []).append(file)
        else:
            ignored[f'ending in {file.suffix.lower() or "nothing"}'] += 1
    for what, count in ignored.items():
        if count:
            print(f'ignored: {count} {what}')
    if len(classes) < 2:
        raise ValueError(
            f'{folder} holds {len(classes)} folders with images; at least 2, '
            f'one a class, are needed ({folder}/aurora/IMG_1.jpg and so on), '
            f'with images ending in {IMAGE_SUFFIXES}'
        )
    return dict(sorted(classes.items()))


def is_image(file):
    return file.suffix.lower() in IMAGE_SUFFIXES


def leave_out_unreadable(classes, skip, jobs):
    """Open all images.

    Args:
        classes (dict[str, list[Path]]): Images by class.
        skip (bool): Whether to go on without those that cannot be read.
        jobs (int): Processes that open images.

    Returns:
        dict[str, list[Path]]: The readable ones, by class.

    Raises:
        ValueError: Naming all unreadable images, unless ``skip``.
    """
    files = [str(file) for group in classes.values() for file in group]
    print(f'opening {len(files)} images of {len(classes)} classes')
    if jobs == 1:
        problems = track_progress(open_image, files)
    else:
        problems = track_parallel_progress(open_image, files, jobs)
    print()
    bad = {f: p for f, p in zip(files, problems, strict=True) if p}
    if bad and not skip:
        lines = ''.join(f'\n  {f}: {problem}' for f, problem in bad.items())
        raise ValueError(
            f'{len(bad)} images cannot be read; repair or remove them, or '
            f'leave them out with --skip-unreadable:{lines}'
        )
    for file, problem in bad.items():
        print(f'left out: {file}: {problem}')
    readable = {
        name: [file for file in group if str(file) not in bad]
        for name, group in classes.items()
    }
    return {name: group for name, group in readable.items() if group}


def open_image(path):
    """Say what is wrong with an image; nothing, if it can be decoded."""
    Image.MAX_IMAGE_PIXELS = None  # a scan at 1200 dpi is no attack
    return find_problem(path)


def split(classes, val_fraction, test_fraction, seed):
    """Split each class at random, on its own.

    A class keeps its split when others come or go.

    Args:
        classes (dict[str, list[Path]]): Images by class.
        val_fraction (float): Share for validation.
        test_fraction (float): Share for the test.
        seed (int): Seed of the choice.

    Returns:
        dict[str, list[tuple[Path, int]]]: Images and labels by split.
    """
    lists = {name: [] for name in SPLITS}
    for label, (name, files) in enumerate(classes.items()):
        rng = np.random.default_rng([seed, zlib.crc32(name.encode())])
        sizes = split_sizes(len(files), val_fraction, test_fraction)
        order = rng.permutation(np.repeat(SPLITS, sizes))
        for file, part in zip(files, order, strict=True):
            lists[str(part)].append((file, label))
    return lists


def warn_of_small_classes(classes, wanted):
    """Tell which classes cannot be in all lists."""
    small = [
        f'{name} ({len(f)})' for name, f in classes.items() if len(f) < wanted
    ]
    if small:
        print(
            f'warning: fewer than {wanted} images, so that the class is '
            f'trained on, and missing in other lists: {", ".join(small)}'
        )


def texts(lists, classes, out):
    """The content of each list, with paths as seen from ``out``."""
    content = {'classes.txt': ''.join(f'{name}\n' for name in classes)}
    for part, images in lists.items():
        lines = (f'{os.path.relpath(f, out)} {n}\n' for f, n in images)
        if images:
            content[f'{part}.txt'] = ''.join(lines)
    return content


def write(content, out, force):
    """Write the lists; none if that would lose another one.

    Args:
        content (dict[str, str]): Texts by file name.
        out (Path): Folder to write into.
        force (bool): Whether to replace lists that differ.

    Raises:
        ValueError: If a list is there and differs, unless ``force``.
    """
    old = [out / name for name in NAMES if (out / name).exists()]
    differ = [f for f in old if f.read_text() != content.get(f.name)]
    if differ and not force:
        raise ValueError(
            f'{", ".join(map(str, differ))}: a split that differs is there; '
            'keep it, write elsewhere with --out, or replace it with --force'
        )
    for file in differ:
        file.unlink()
    out.mkdir(parents=True, exist_ok=True)
    for name, text in content.items():
        (out / name).write_text(text)


def free_link(target, name):
    """A place in ``data`` for a link that takes no other folder's name."""
    more = (f'{name}_{n}' for n in itertools.count(2))
    names = itertools.chain([name], more)
    places = (Path('data', name) for name in names)
    return next(
        p for p in places if not os.path.lexists(p) or p.resolve() == target
    )


def training_command(out, num_classes, has_test):
    """What to type to train with the lists, a line a list item."""
    lines = []
    if not re.fullmatch(r'[\w./-]*[a-zA-Z_/][\w./-]*', str(out)):
        # --cfg-options drops blanks and splits at commas
        target = out.resolve()
        out = free_link(target, re.sub(r'[^\w.-]', '_', target.name))
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


def run(args):
    check_fractions(args.val_fraction, args.test_fraction)
    out = args.out or args.folder
    found = find_classes(args.folder)
    classes = leave_out_unreadable(found, args.skip_unreadable, args.jobs)
    lists = split(classes, args.val_fraction, args.test_fraction, args.seed)
    warn_of_small_classes(classes, 3 if args.test_fraction else 2)
    content = texts(lists, classes, out)
    write(content, out, args.force)
    for name, text in content.items():
        print(f'{out / name}: {text.count(chr(10))} lines')
    print('\nTo train on them:\n')
    has_test = 'test.txt' in content
    print('\n'.join(training_command(out, len(classes), has_test)))


def main(args):
    with plain_errors(args.folder):
        run(args)
