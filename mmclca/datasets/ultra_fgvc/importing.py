# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Download an Ultra-FGVC dataset, or convert it to images and CSV lists."""

import os
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory

from huggingface_hub import hf_hub_download

from mmclca.utils.files import read_bytes, write_rows
from mmclca.utils.messages import track

from ..decoding import open_image
from ..image_files import IMAGE_SUFFIXES, check_image
from . import lists
from .info import UltraFGVCInfo
from .layouts import LAYOUTS, LeafImage, normalize_class, read_parquet_images

REPOSITORY = 'hibana2077/CV-dataset-all-in-parquet'
_SUFFIXES = dict(JPEG='.jpg', TIFF='.tif', MPO='.jpg')


@dataclass(frozen=True)
class PublishedSet:
    """Images in a folder, and its layout."""

    layout: str
    folder: Path
    images: list[LeafImage]

    def __str__(self) -> str:
        return f'{self.layout} at {self.folder}'


def download(
    info: UltraFGVCInfo, folder: str | os.PathLike, revision: str = 'main'
) -> str:
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
            local_dir=os.fspath(folder),
            endpoint=os.environ.get('HF_ENDPOINT'),
        )
    except Exception as error:  # the types depend on the hub's HTTP client
        raise OSError(
            f'cannot download {info.title}: {error}\n'
            'Run the same command to resume. By hand: hf download '
            f'{REPOSITORY} {name} --repo-type dataset --local-dir FOLDER; for '
            'a mirror, set HF_ENDPOINT; more: docs/data_sets.md'
        ) from error


def find_set(folder: str | os.PathLike, info: UltraFGVCInfo) -> PublishedSet:
    """Read a dataset in the first layout found in its folder.

    ``folder`` may also be a parquet file. SoyAgeing may be complete or have
    a folder, list or file per stage.

    Raises:
        FileNotFoundError: If the folder has none of the layouts.
        Error: If the lists are invalid.
    """
    folder = Path(folder)
    for layout, read in LAYOUTS.items():
        for parts in ((info,), info.parts):
            images = [lists.read_part(folder, part, read) for part in parts]
            if all(images):
                joined = [image for part in images for image in part]
                joined = _count_from_1(joined, info)
                return PublishedSet(layout, folder, joined)
    files = ', '.join(part.parquet for part in info.parts)
    raise FileNotFoundError(
        f'{folder} does not contain {info.title}: no train.csv, '
        f'anno/train.txt, train/ with a folder per class, or {files}; the '
        'layouts are described in docs/data_sets.md'
    )


def _count_from_1(
    images: list[LeafImage], info: UltraFGVCInfo
) -> list[LeafImage]:
    """Rename classes that folders or a parquet file count from 0."""
    names = {image.class_name for image in images}
    if not (info.is_numbered and '0' in names and lists.are_numbers(names)):
        return images
    return [
        replace(image, class_name=str(int(image.class_name) + 1))
        for image in images
    ]


def list_labeled_images(
    published: PublishedSet, info: UltraFGVCInfo, partial: bool = False
) -> list[LeafImage]:
    """List each image once, with split and label.

    Raises:
        Error: If the dataset is incomplete and not ``partial``.
    """
    splits = lists.divide(published.images, info)
    advice = 'to accept a part of the dataset, set `partial=True`'
    for split in () if partial else {**splits, 'trainval': (), 'test': ()}:
        lists.check_split(splits, split, info, advice)
    classes = lists.list_classes(published.images, info)
    splits.pop('trainval' if 'val' in splits else 'train', None)
    return [
        replace(image, split=split)
        for split, split_images in splits.items()
        for image in lists.label_images(split_images, classes)
    ]


def import_set(
    published: PublishedSet,
    info: UltraFGVCInfo,
    target: str | os.PathLike | None = None,
    partial: bool = False,
) -> list[LeafImage]:
    """Decode all images, and write them with CSV lists into a new folder.

    The folder is renamed to ``target`` once it is complete. Images keep their
    names if all names follow the dataset's pattern. Without ``target``,
    nothing is written.

    Raises:
        Error: If the dataset is incomplete and not ``partial``, or images
            are unreadable.
        FileNotFoundError: If images are missing.
        FileExistsError: If ``target`` exists.
    """
    if target and os.path.exists(target):
        raise FileExistsError(f'{target} already exists; remove it first')
    images = list_labeled_images(published, info, partial)
    contents = _read_images(published, images, info)
    if target:
        _write_set(contents, images, _name_files(images, info), Path(target))
    else:
        for _ in contents:  # raises if an image is unreadable
            pass
    return images


def _read_images(
    published: PublishedSet, images: Sequence[LeafImage], info: UltraFGVCInfo
) -> Iterator[tuple[str, str | bytes]]:
    """Yield path and path (files), or path and content (parquet rows).

    Unreadable images are skipped, and refused together at the end.
    """
    problems, paths = {}, {image.path for image in images}
    sources = ((image.path, image.path) for image in images)
    if published.layout == 'parquet':
        files = dict.fromkeys(Path(path).parent for path in sorted(paths))
        sources = (row for file in files for row in read_parquet_images(file))
    for path, source in track(sources, 'Images', total=len(paths)):
        problem = path in paths and check_image(source)
        if problem:
            problems[path] = problem
        elif path in paths:
            yield path, source
    lists.refuse_unreadable(problems, info)


def _name_files(
    images: Sequence[LeafImage], info: UltraFGVCInfo
) -> dict[str, str]:
    """Map paths to file names in the new folder, without suffix if renamed."""
    unique = {(image.stage, image.file_name) for image in images}
    matches = (re.match(info.class_pattern, x.file_name) for x in images)
    are_named = len(unique) == len(images) and all(
        match
        and normalize_class(match[1]) == image.class_name
        and image.file_name.lower().endswith(IMAGE_SUFFIXES)
        for match, image in zip(matches, images, strict=True)
    )
    names, counted = {}, Counter()
    for image in images:
        name = image.file_name
        if not are_named:
            split = 'test' if image.split == 'test' else 'train'
            key = image.class_name, image.stage, split
            counted[key] += 1
            name = info.file_format.format(
                cls=image.class_name,
                stage=image.stage,
                split=split,
                k=counted[key],
            )
            # class names from untrusted files must not leave the folder
            name = name.replace('/', '_')
        folder = f'{image.stage}/images' if image.stage else 'images'
        names[image.path] = f'{folder}/{name}'
    return names


def _write_set(
    contents: Iterable[tuple[str, str | bytes]],
    images: Sequence[LeafImage],
    names: dict[str, str],
    target: Path,
) -> None:
    """Write images and lists to a folder that appears once it is complete."""
    files = {}
    target.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory('', f'.{target.name}.', target.parent) as partial:
        folder = Path(partial, target.name)
        for path, source in contents:
            content = source if isinstance(source, bytes) else read_bytes(path)
            name = names[path]
            if not name.lower().endswith(IMAGE_SUFFIXES):
                with open_image(BytesIO(content)) as opened:
                    image_format = opened.format or ''
                suffix = f'.{image_format.lower()}'
                name += _SUFFIXES.get(image_format, suffix)
            files[path] = name
            file = folder / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)
        rows = defaultdict(list)
        for image in images:
            row = image.label, files[image.path]
            rows[image.split.replace('trainval', 'train_val')].append(row)
        if 'train' in rows:
            rows['train_val'] = sorted(rows['train'] + rows['val'])
        for name, split_images in rows.items():
            write_rows(
                folder / f'{name}.csv', [('class_id', 'dir'), *split_images]
            )
        os.rename(folder, target)
