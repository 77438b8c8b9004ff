# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Find damaged files: a checkpoint, or those in a model folder or work dir.
Compares all tensors with their checksums, and writes nothing.

``python -m mmclca verify FILE_OR_FOLDER``
"""

import json
import re
import zlib
from pathlib import Path

from mmclca.checkpoints.fitted import THRESHOLD, WEIGHTS, model_file
from mmclca.utils.files import PARTIAL
from mmclca.utils.folders import WHOLE, read_file
from mmclca.utils.messages import print_safe, track

from .. import Parser, UsageError
from ..errors import describe_error
from ..packages import checkpoints, fitting

UNFINISHED = re.compile(rf'.*/\.draft/.*|.*/{PARTIAL.format(".*", ".*")}')
NAMES = (*WEIGHTS, '.pt2', THRESHOLD, 'fit.json')


def parse_args():
    parser = Parser(__doc__)
    meaning = 'checkpoint, .pt2 file, model folder or work dir'
    parser.add('place', meaning, type=Path, metavar='FILE_OR_FOLDER')
    return parser.parse_args()


def find(place):
    """List the files with checksums, without links and unfinished files."""
    return [
        path
        for path in ([place] if place.is_file() else sorted(place.rglob('*')))
        if {path.name, path.suffix} & {*NAMES}
        and path.is_file()
        and not UNFINISHED.fullmatch(f'/{path}')
        and (path == place or not path.is_symlink())
    ]


def check(path):
    """Raise an error if a file is damaged."""
    sums = checkpoints.checksums
    if path.suffix in WEIGHTS:
        checkpoints.opening.open_checkpoint(str(path))
    elif path.suffix == '.pt2':
        if entry := sums.damaged_entry(path):
            raise ValueError(f'{entry} {sums.WRONG}')
    else:
        sums.check_seal(json.loads(path.read_bytes()))
    if path.name == 'fit.json':
        check_folder(path.parent)


def check_folder(folder):
    """Raise an error if a model is missing, or photographs.csv damaged."""
    files = fitting.record.ModelFolder(
        folder.parent if folder.name == WHOLE else folder
    )
    model_file(files.path)
    files.used_rows()
    content, stored = read_file(files.path, files.table.name), files.read()
    if stored.table not in (None, zlib.crc32(content)):
        raise ValueError(f'{files.table} {checkpoints.checksums.WRONG}')


def damage(path):
    """Return the damage of a file in one line, or None."""
    try:
        check(path)
    except Exception as error:  # damaged files may raise anything
        text = describe_error(error)
        return text if str(path.parent) in text else f'{path}: {text}'
    return None


def main(args):
    files = find(args.place)
    if not files:
        raise UsageError(
            f'{args.place} is not a checkpoint, .pt2 file, model folder or '
            'work dir; check the path'
        )
    found = [*filter(None, map(damage, track(files, 'Files', len(files))))]
    print_safe(*(f'Damaged    {text}' for text in found))
    print_safe(f'Checked    {len(files)} files, {len(found)} damaged')
    return int(bool(found))
