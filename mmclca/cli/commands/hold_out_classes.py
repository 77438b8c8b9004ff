# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""What ``tools/dataset_converters/hold_out_classes.py`` does."""

import os

import numpy as np
from mmengine import list_from_file

from .. import plain_errors


def read_list(file, num_classes):
    """Images and labels of a list.

    Raises:
        ValueError: Naming all lines that are no path and label.
    """
    pairs, wrong = [], []
    lines = filter(None, map(str.strip, list_from_file(str(file))))
    for number, line in enumerate(lines, 1):
        path, _, label = line.rpartition(' ')
        if path and label.isdecimal() and int(label) < num_classes:
            pairs.append((path, int(label)))
        else:
            wrong.append(f'\n  {number}: {line}')
    if wrong:
        raise ValueError(
            f'{file}: lines must be "path label", with labels from 0 to '
            f'{num_classes - 1}, but there are:{"".join(wrong)}'
        )
    return pairs


def draw_classes(num_classes, num, seed):
    """Which classes to hold out, ascending."""
    if not 1 <= num <= num_classes - 2:
        raise ValueError(
            f'--num {num}: with {num_classes} classes it must be from 1 to '
            f'{num_classes - 2}, so that two are left'
        )
    rng = np.random.default_rng(seed)
    return sorted(rng.choice(num_classes, num, replace=False).tolist())


def without_seen(lists):
    """Lists without the images that stand in an earlier one."""
    seen = set()
    for name, pairs in lists.items():
        lists[name] = [pair for pair in pairs if pair[0] not in seen]
        seen.update(path for path, _ in pairs)
    return lists


def texts(lists, classes, held_out, folder, out):
    """What each file is to hold; classes of each folder are numbered anew."""
    known = [i for i in range(len(classes)) if i not in held_out]
    unknown = [pair for pairs in lists.values() for pair in pairs]
    content = {
        out / 'classes.txt': [classes[i] for i in known],
        out / 'held_out/classes.txt': [classes[i] for i in held_out],
        out / 'held_out/images.txt': lines(
            unknown, held_out, folder, out / 'held_out'
        ),
    }
    for name, pairs in lists.items():
        content[out / f'{name}.txt'] = lines(pairs, known, folder, out)
    return {
        file: ''.join(f'{line}\n' for line in found)
        for file, found in content.items()
    }


def lines(pairs, wanted, folder, out):
    """Lines of a list in ``out``, of images of the classes ``wanted``."""
    return [
        f'{os.path.relpath(folder / path, out)} {wanted.index(label)}'
        for path, label in pairs
        if label in wanted
    ]


def write(content):
    """Write the files; none if that would lose another one."""
    old = [file for file in content if file.exists()]
    differ = [file for file in old if file.read_text('utf-8') != content[file]]
    if differ:
        raise ValueError(
            f'{", ".join(map(str, differ))}: lists that differ are there; '
            'write to another --out'
        )
    for file, text in content.items():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, 'utf-8')
        print(f'{file}: {len(text.splitlines())} lines')


def run(args):
    classes = list_from_file(str(args.folder / 'classes.txt'))
    held_out = draw_classes(len(classes), args.num, args.seed)
    names = dict(train=args.train, val=args.val, test=args.test)
    lists = without_seen(
        {
            split: read_list(args.folder / name, len(classes))
            for split, name in names.items()
            if name
        }
    )
    write(texts(lists, classes, held_out, args.folder, args.out))
    print(f'held out: {", ".join(classes[i] for i in held_out)}')


def main(args):
    with plain_errors(args.folder):
        run(args)
