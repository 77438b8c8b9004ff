# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Download an Ultra-FGVC dataset, or convert it to images and CSV lists."""

import os
import re
from collections import Counter, defaultdict
from io import BytesIO
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory

from huggingface_hub import hf_hub_download

from mmclca.utils.files import read_bytes, write_rows
from mmclca.utils.messages import track

from ..decoding import open_image
from ..image_files import IMAGE_SUFFIXES, check_image
from .forms import parquet_images
from .info import canonical
from .lists import check_split, class_names, divide, label, refuse_unreadable

REPOSITORY = 'hibana2077/CV-dataset-all-in-parquet'
_SUFFIXES = dict(JPEG='.jpg', TIFF='.tif', MPO='.jpg')


def download(info, folder, revision='main') -> str:
    """Download the parquet file of a dataset or stage, or resume it.

    Raises:
        OSError: If the download fails, with the commands to do it by hand.
    """
    name = f'datasets/ufgvc/{info.parquet}'
    try:
        return hf_hub_download(
            REPOSITORY,
            name,
            repo_type='dataset',
            revision=revision,
            local_dir=folder,
            endpoint=os.environ.get('HF_ENDPOINT'),
        )
    except Exception as error:  # the types depend on the hub's HTTP client
        raise OSError(
            f'cannot download {info.title}: {error}\n'
            'Run the same command to resume. By hand: hf download '
            f'{REPOSITORY} {name} --repo-type dataset --local-dir FOLDER; for '
            'a mirror, set HF_ENDPOINT; more: docs/data_sets.md'
        ) from error


def listed_images(found, info, counts=True):
    """List each image of a dataset once, with its split and label.

    Raises:
        Error: If the dataset is incomplete.
    """
    splits = divide(found.images, info)
    for split in {**splits, 'trainval': [], 'test': []} if counts else ():
        check_split(splits, split, info, found)
    classes = class_names(found.images, info)
    splits.pop('trainval' if 'val' in splits else 'train', None)
    return [
        image._replace(split=split)
        for split, listed in splits.items()
        for image in label(listed, classes)
    ]


def import_set(found, info, target=None, counts=True):
    """Decode all images, and write them with CSV lists into a new folder.

    The folder is renamed to ``target`` once it is complete. Images keep their
    names if all names follow the pattern of the dataset. Without ``target``,
    nothing is written.

    Raises:
        Error: If the dataset is incomplete, or images are unreadable.
        FileNotFoundError: If images are missing.
        FileExistsError: If ``target`` exists.
    """
    if target and os.path.exists(target):
        raise FileExistsError(f'{target} already exists; remove it first')
    images = listed_images(found, info, counts)
    decoded = _decoded(found, images, info)
    if target:
        _write_set(decoded, images, _names(images, info), Path(target))
    else:
        for _ in decoded:  # raises if an image is unreadable
            pass
    return images


def _write_set(decoded, images, names, target):
    files = {}
    target.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory('', f'.{target.name}.', target.parent) as partial:
        folder = Path(partial, target.name)
        for path, source in decoded:
            is_path = isinstance(source, str)
            content = read_bytes(path) if is_path else source
            files[path] = _with_suffix(names[path], content)
            file = folder / files[path]
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)
        _write_lists(folder, images, files)
        os.rename(folder, target)


def _decoded(found, images, info):
    """Yield path and path (files), or path and content (parquet rows).

    Bad images are skipped, and refused together at the end.
    """
    bad, paths = {}, {image.path for image in images}
    sources = ((image.path, image.path) for image in images)
    if found.form == 'parquet':
        sources = chain(*map(parquet_images, found.places))
    for path, source in track(sources, 'Images', total=len(paths)):
        problem = path in paths and check_image(source)
        if problem:
            bad[path] = problem
        elif path in paths:
            yield path, source
    refuse_unreadable(bad, info)


def _names(images, info):
    """Map paths to file names in the new folder, without suffix if renamed."""
    own = {(image.stage, image.file_name) for image in images}
    kept = len(own) == len(images) and all(_is_named(i, info) for i in images)
    places, counted = {}, Counter()
    for image in images:
        split = 'test' if image.split == 'test' else 'train'
        kind = image.class_name, image.stage, split
        counted[kind] += 1
        facts = dict(zip(('cls', 'stage', 'split'), kind, strict=True))
        name = info.file_format.format(k=counted[kind], **facts)
        # class names from untrusted files must not leave the folder
        name = image.file_name if kept else name.replace('/', '_')
        folders = filter(None, (image.stage, 'images'))
        places[image.path] = '/'.join([*folders, name])
    return places


def _is_named(image, info):
    name = image.file_name
    match = re.match(info.class_pattern, name)
    named = match and canonical(match[1]) == image.class_name
    return named and name.lower().endswith(IMAGE_SUFFIXES)


def _with_suffix(name, content):
    if name.lower().endswith(IMAGE_SUFFIXES):
        return name
    with open_image(BytesIO(content)) as image:
        kind = image.format
    return name + _SUFFIXES.get(kind, f'.{kind.lower()}')


def _write_lists(folder, images, files):
    lists = defaultdict(list)
    for image in images:
        row = image.label, files[image.path]
        lists[image.split.replace('trainval', 'train_val')].append(row)
    if 'train' in lists:
        lists['train_val'] = sorted(lists['train'] + lists['val'])
    for name, rows in lists.items():
        write_rows(folder / f'{name}.csv', [('class_id', 'dir'), *rows])
