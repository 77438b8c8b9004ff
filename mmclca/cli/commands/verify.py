# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Check a checkpoint, model folder, web app or work dir for damaged and
missing files. Compares all tensors with their checksums, and writes nothing.

``python -m mmclca verify FILE_OR_FOLDER``
"""

import json
import re
import zlib
from base64 import b64decode
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

from mmclca.checkpoints.gate.folders import WHOLE, read_file
from mmclca.checkpoints.model_folder import (
    RECORD,
    THRESHOLD,
    WEIGHTS,
    ModelFolder,
)
from mmclca.errors import Error
from mmclca.utils.files import PARTIAL
from mmclca.utils.messages import join_first, print_safe, track

from ..errors import describe_error
from ..listing import Listing

LISTING = Listing(
    'fit and use',
    'find damaged and missing files of a model or training',
    'troubleshooting',
)

UNFINISHED = re.compile(rf'.*/\.draft/.*|.*/{PARTIAL.format(".*", ".*")}')
LAST, WORKER = 'last_checkpoint', 'sw.js'  # of a work dir, of a web app
NAMES = (*WEIGHTS, '.pt2', '.onnx', THRESHOLD, RECORD, LAST, WORKER)
# digests of the files in a web app
DIGESTS = re.compile(r'FILES = (\{[^}]*\})')
START = 'index.html'


def add_arguments(parser):
    meaning = 'checkpoint, .pt2 file, model folder, web app or work dir'
    parser.add('place', meaning, type=Path, metavar='FILE_OR_FOLDER')


def find(path_or_folder):
    """List the files to check, without links and unfinished files."""
    return [
        path
        for path in (
            [path_or_folder]
            if path_or_folder.is_file()
            else sorted(path_or_folder.rglob('*'))
        )
        if {path.name, path.suffix} & {*NAMES}
        and path.is_file()
        and not UNFINISHED.fullmatch(f'/{path}')
        and (path == path_or_folder or not path.is_symlink())
    ]


def check(path):
    """Raise an error if a file is damaged."""
    from mmclca.checkpoints import checksums
    from mmclca.checkpoints.opening import open_checkpoint

    if path.suffix in WEIGHTS:
        open_checkpoint(str(path))
    elif path.suffix == '.pt2':
        if entry := checksums.find_damaged_entry(path):
            raise Error(f'{entry} {checksums.WRONG}')
    elif path.suffix == '.json':
        checksums.verify_checksum(json.loads(path.read_bytes()))
    elif path.name == WORKER:
        check_web_app(path.parent)
    elif path.name == LAST:
        missing_checkpoint(path.parent)
    if path.name == RECORD:
        check_folder(path.parent)


def check_folder(folder):
    """Raise an error if fit.json or photographs.csv is damaged."""
    from mmclca.checkpoints.checksums import WRONG
    from mmclca.fitting.fit_folder import FitFolder

    files = FitFolder(folder.parent if folder.name == WHOLE else folder)
    if files.table.name in files.list_missing():
        files.read()
        return
    files.read_used_photos()
    content, stored = read_file(files.path, files.table.name), files.read()
    if stored.table not in (None, zlib.crc32(content)):
        raise Error(f'{files.table} {WRONG}')


def read_digests(folder):
    """Return the digests in a service worker by file name; {} for others."""
    match = DIGESTS.search((folder / WORKER).read_text('utf-8'))
    digests = json.loads(match[1]) if match else {}
    return {START if x == './' else x: y for x, y in digests.items()}


def check_web_app(folder):
    """Raise an error if a file of a web app differs from its digest."""
    for name, digest in read_digests(folder).items():
        path = folder / name
        if not path.is_file():
            continue  # missing, see below
        algorithm, _, expected = str(digest).partition('-')
        actual = sha256(path.read_bytes()).digest()
        if algorithm == 'sha256' and actual != b64decode(expected):
            raise Error(f'{path} does not match its digest in {WORKER}')


def damage(path):
    """Return the damage of a file in one line, or None."""
    try:
        check(path)
    except Exception as error:  # damaged files may raise anything
        message = describe_error(error)
        return message if str(path.parent) in message else f'{path}: {message}'
    return None


def missing(folder):
    """List the missing files of a model folder, web app or work dir."""
    names = []
    for list_names in (missing_in_folder, missing_in_app, missing_checkpoint):
        with suppress(ValueError):  # a damaged list, see damage()
            names += list_names(folder)
    return [folder / name for name in names]


def missing_in_folder(folder):
    """List the missing files of a model folder."""
    return ModelFolder(folder).list_missing()


def missing_in_app(folder):
    """List the missing files of a web app by the digests in its worker."""
    if (folder / WORKER).is_file():
        names = read_digests(folder)
        return [name for name in names if not (folder / name).is_file()]
    return [WORKER] * (folder / 'manifest.webmanifest').is_file()


def missing_checkpoint(folder):
    """List the newest checkpoint of a work dir if it is missing."""
    if not (folder / LAST).is_file():
        return []
    newest = Path((folder / LAST).read_text('utf-8').strip())
    # by its name, since a work dir may be moved
    is_there = newest.exists() or (folder / newest.name).exists()
    return [] if is_there else [newest.name]


def list_missing(root):
    """List the missing files in a folder and below it."""
    folders = [root, *root.rglob('*')] if root.is_dir() else []
    skipped = {WHOLE, '.draft'}
    return [
        path
        for folder in folders
        if folder.is_dir()
        and not folder.is_symlink()
        and skipped.isdisjoint(folder.parts)
        for path in missing(folder)
    ]


def has_checksums(path, files):
    """Return whether damage of a file can be found."""
    from mmclca.checkpoints import checksums

    if path.name in (LAST, WORKER):
        return True
    if path.parent / WORKER in files:
        return path.name in read_digests(path.parent)
    return checksums.has_checksums(path)


def main(args):
    files = find(args.place)
    gone = list_missing(args.place)
    if not (files or gone):
        raise Error(
            f'{args.place} is not a checkpoint, .pt2 file, model folder, web '
            'app or work dir; check the path'
        )
    broken = {x: damage(x) for x in track(files, 'Files', len(files))}
    lines = [message for message in broken.values() if message]
    unsure = [x for x in files if not (broken[x] or has_checksums(x, files))]
    for line in lines:
        print_safe(f'Damaged    {line}')
    for path in gone:
        print_safe(f'Missing    {path}')
    number = len(files) - len(unsure)
    parts = [f'{number} {"file" if number == 1 else "files"}']
    parts += [f'{len(lines)} damaged', *[f'{len(gone)} missing'] * bool(gone)]
    print_safe(f'Checked    {", ".join(parts)}')
    if unsure:
        names = join_first([path.name for path in unsure], 3)
        count = f'{len(unsure)} {"file" if len(unsure) == 1 else "files"}'
        print_safe(f'Unchecked  no checksums: {count} ({names})')
    return int(bool(lines or gone))
