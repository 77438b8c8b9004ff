# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Measure a model on new photos with few labels: draw photos to label, then
estimate accuracy and photos per class.

``python -m mmclca survey MODEL NEW_PHOTOS --label 30`` and
``python -m mmclca survey MODEL NEW_PHOTOS --labels survey.csv``
"""

import shlex
from pathlib import Path

from mmclca.checkpoints.model_folder import ModelFolder
from mmclca.errors import Error
from mmclca.utils.extras import require
from mmclca.utils.messages import print_safe
from mmclca.utils.spreadsheets import NEEDED

from .. import model_files
from ..arguments import check_file, file_named, whole_number
from ..listing import Listing

LISTING = Listing(
    'fit and use', 'measure accuracy and class counts on new photos', 'survey'
)
TABLE = Path('survey.csv')
MIN_LABELS = 10


def add_arguments(parser):
    parser.share('folder')
    parser.add('photos', 'folder of new photos', type=Path)
    group = parser.add_mutually_exclusive_group()
    group.add_argument(
        '--label',
        type=whole_number(MIN_LABELS),
        default=30,
        metavar='N',
        help='photos to draw and label (default: %(default)s)',
    )
    group.add_argument(
        '--labels',
        type=Path,
        metavar='TABLE',
        help='drawn table with labels, to estimate accuracy and class counts',
    )
    parser.add(
        '--out',
        'table to label (default: survey.csv), or class counts with --labels; '
        '.csv or .xlsx',
        type=file_named('.csv', '.xlsx'),
    )
    parser.add('--seed', 'random seed of the draw', 0, type=whole_number(0))
    parser.add(
        '--refit MODEL',
        'new model folder, fitted to training and labeled photos',
        type=Path,
    )
    parser.share('--device')


def main(args):
    model_files.check_order(str(args.folder), [str(args.photos)])
    ModelFolder.open(args.folder)
    out = args.out or (None if args.labels else TABLE)
    if args.refit and not args.labels:
        raise Error('--refit needs --labels TABLE')
    if out:
        if args.labels and out.resolve() == args.labels.resolve():
            raise Error(f'--out {out} would replace the labels')
        check_file(out)
        if out.suffix.lower() == '.xlsx':
            require(NEEDED, extra='tables')
    if args.labels:
        measure(args, out)
    else:
        draw(args, out)


def draw(args, out):
    """Draw photos, and write the table to label."""
    with model_files.quiet():
        from mmclca.fitting.console_text import get_program
        from mmclca.survey import draw_survey
        from mmclca.survey.text import drawn_lines
    with model_files.quiet():
        survey = draw_survey(
            args.folder, args.photos, out, args.label, args.seed, args.device
        )
    print_safe(*drawn_lines(survey))
    print_safe(f'Saved      {out}')
    words = [str(x) for x in (args.folder, args.photos, '--labels', out)]
    print_safe(f'Next       {get_program()} survey {shlex.join(words)}')


def measure(args, out):
    """Estimate accuracy and class counts, and fit a new model on request."""
    with model_files.quiet():
        from mmclca.fitting.fit_folder import FitFolder
        from mmclca.fitting.log import redirected_output
        from mmclca.survey import measure_survey, refit
        from mmclca.survey.refit import check_new_folder
        from mmclca.survey.text import measured_lines, write_counts
    record = FitFolder.open(args.folder).read_complete()
    if args.refit:
        check_new_folder(args.refit, args.folder)
    with model_files.quiet():
        survey = measure_survey(
            args.folder, args.photos, args.labels, args.device
        )
    print_safe(*measured_lines(survey, record))
    if out:
        write_counts(survey, out)
        print_safe(f'Saved      {out}')
    if args.refit:
        print_safe(f'Note       the result is that of {args.folder}')
        with redirected_output():
            refit(survey, args.folder, args.refit, args.device)
