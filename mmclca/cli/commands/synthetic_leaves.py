# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Draw a data set of leaf cultivars.

python tools/dataset_converters/synthetic_leaves.py data/synthetic_leaves

The classes differ in shape alone: outline, teeth and veins. The same options
give the same files, byte for byte, with any number of jobs.
"""

import json
from functools import partial
from pathlib import Path
from typing import NamedTuple

from mmclca.utils.csv_files import write_rows
from mmclca.utils.lazy import lazy

from .. import Parser, plain_errors

cv2 = lazy('cv2')
photographs = lazy('mmclca.datasets.photographs')
photograph_lists = lazy('mmclca.datasets.photographs.lists')
verify = lazy('mmclca.datasets.preparation.verify')
synthetic_leaves = lazy('mmclca.datasets.synthetic_leaves')
np = lazy('numpy')

MARK = 'synthetic_leaves.json'  # says that a folder is ours, and its options


def parse_args(argv=None):
    parser = Parser(
        description='Draw leaf cultivars, alike in colour and size, that '
        'differ in outline, teeth and veins.'
    )
    parser.add('out', 'folder to make', type=Path)
    parser.add('--classes', 'cultivars to draw', 8)
    parser.add('--per-class', 'images a class, all splits together', 30)
    parser.add('--size', 'pixels', 224)
    parser.add('--seed', 'of the cultivars and their leaves', 0)
    parser.add('--difference', 'distance between the cultivars, 0 to 2', 1.0)
    parser.add('--val-fraction', 'share that is validated with', 0.2)
    parser.add('--test-fraction', 'share that is tested with', 0.2)
    parser.add(
        '--layout',
        'folders: images/CLASS/*.jpg, lists `path label`, classes.txt. '
        'ultra-fgvc: images/*.png and the CSV lists of the CLCA authors',
        'folders',
        choices=LAYOUTS,
    )
    parser.add('--jobs', 'processes', 1)
    return parser.parse_args(argv)


class Specimen(NamedTuple):
    """An image to draw."""

    path: str
    label: int
    index: int
    split: str


def check(options):
    """Refuse what cannot be drawn."""
    for name, least in (('per_class', 2), ('size', 32), ('seed', 0)):
        if options[name] < least:
            raise ValueError(
                f'--{name.replace("_", "-")} is {options[name]}; at least '
                f'{least} is needed'
            )


def plan(options):
    """List the images of a data set, class by class.

    Args:
        options (dict): The command line's, by name.

    Returns:
        list[Specimen]: All images.
    """
    name_of, _ = LAYOUTS[options['layout']]
    fractions = options['val_fraction'], options['test_fraction']
    sizes = photograph_lists.split_sizes(options['per_class'], *fractions)
    splits = np.repeat(photograph_lists.PARTS, sizes).tolist()
    return [
        Specimen(name_of(label, index, split), label, index, split)
        for label in range(options['classes'])
        for index, split in enumerate(splits)
    ]


def class_name(label):
    return f'cultivar_{label + 1:02d}'


def name_in_folder(label, index, split):
    name = class_name(label)
    return f'images/{name}/{name}_{index + 1:04d}.jpg'


def name_as_released(label, index, split):
    part = 'test' if split == 'test' else 'train'
    return f'images/{label + 1}_{index + 1}_{part}.png'


def write_text_lists(out, specimens):
    """Write ``train.txt``, ``val.txt``, ``test.txt`` and ``classes.txt``."""
    images = photographs.Photographs(
        [str(out / s.path) for s in specimens],
        [s.label for s in specimens],
        [*map(class_name, dict.fromkeys(s.label for s in specimens))],
        groups=None,
        splits=[s.split for s in specimens],
        source=str(out),
    )
    lists = photograph_lists.lines_of_lists(
        images, out, photograph_lists.PARTS
    )
    photograph_lists.write_lists(lists, force=True)


def write_csv_lists(out, specimens):
    """Write the four CSV files, whose paths start in ``images``."""
    parts = {split: [split] for split in photograph_lists.PARTS}
    parts['train_val'] = ['train', 'val']
    for name, splits in parts.items():
        rows = [
            (s.label, Path(s.path).name)
            for s in specimens
            if s.split in splits
        ]
        write_rows(out / f'{name}.csv', [('class_id', 'dir'), *rows])


def take_over(out, options):
    """Mark the folder as ours; images that it had and will not have go.

    Args:
        out (Path): The folder to write into.
        options (dict): The command line's, by name.

    Raises:
        ValueError: If it has files that were not drawn by this tool.
    """
    mark = out / MARK
    if mark.exists():
        before = plan(json.loads(mark.read_text()))
        gone = {s.path for s in before} - {s.path for s in plan(options)}
        for path in gone:
            (out / path).unlink(missing_ok=True)
    elif out.exists() and any(out.iterdir()):
        raise ValueError(
            f'{out} is not empty, and its files were not drawn here (it has '
            f'no {MARK}): name another folder'
        )
    out.mkdir(parents=True, exist_ok=True)
    mark.write_text(json.dumps(options, indent=1) + '\n')


def draw(specimen, out, cultivars, size, seed):
    """Draw one image into its file."""
    cv2.setNumThreads(1)
    rng = np.random.default_rng([seed, specimen.label, specimen.index])
    image = synthetic_leaves.draw_leaf(cultivars[specimen.label], rng, size)
    path = out / specimen.path
    path.parent.mkdir(parents=True, exist_ok=True)
    cv2.imwrite(str(path), image[..., ::-1])  # JPEG quality 95 by default


def draw_all(out, options, jobs):
    """Draw all images and write their lists."""
    check(options)
    specimens = plan(options)
    seed = options['seed']
    cultivars = synthetic_leaves.make_cultivars(
        options['classes'], seed, options['difference']
    )
    take_over(out, options)
    task = partial(
        draw, out=out, cultivars=cultivars, size=options['size'], seed=seed
    )
    verify.track(task, specimens, jobs)
    _, write = LAYOUTS[options['layout']]
    write(out, specimens)
    return specimens


LAYOUTS = {
    'folders': (name_in_folder, write_text_lists),
    'ultra-fgvc': (name_as_released, write_csv_lists),
}


def main(args):
    options = dict(vars(args))
    out, jobs = options.pop('out'), options.pop('jobs')
    with plain_errors(out):
        specimens = draw_all(out, options, jobs)
    splits = [s.split for s in specimens]
    counts = {split: splits.count(split) for split in dict.fromkeys(splits)}
    print(f'\n{out}: {options["classes"]} classes, images: {counts}')
