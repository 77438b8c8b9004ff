# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Write a trained model as one file that runs without mmclca. Input of ONNX
files: one RGB photo (H, W, 3), uint8, any size; output: logits (1, classes).
The file also stores class names and config. It is kept only if its outputs
match PyTorch; int8 files are made from a file that passed.

``python tools/deployment/export.py [CONFIG] CHECKPOINT``
"""

import sys
import time
from argparse import SUPPRESS
from pathlib import Path
from shlex import quote

from mmclca.checkpoints import model_folder
from mmclca.errors import Error
from mmclca.export_formats import FORMATS, ExportOption, list_options
from mmclca.utils.messages import print_safe, spinner, warn

from .. import model_files
from ..arguments import CHECKPOINT, check_file, whole_number
from ..listing import Listing

LISTING = Listing(
    'fit and use', 'write the model as one ONNX file', 'deployment'
)


PORT = 8443  # of --serve


def add_arguments(parser):
    config = 'path or name of a config (default: stored in the checkpoint)'
    parser.add('config', config, nargs='?')
    parser.add('checkpoint', CHECKPOINT)
    add_formats(parser)
    for option in list_options():
        add_option(parser, option)
    parser.add(
        '--out',
        'output file (default: name of the checkpoint, new ending) or folder',
        type=Path,
    )
    parser.flag(
        '--serve',
        'show the web app to phones in the same network, until Ctrl-C',
    )
    parser.add(
        '--port',
        f'port of --serve (default: {PORT})',
        type=whole_number(1, 65535),
    )
    parser.add('--host', 'address of --serve (default: of this computer)')
    parser.share('--threshold FILE', '--cfg-options')
    parser.set_defaults(device='cpu')


def add_formats(parser):
    """Add ``--format``, and the flags that select a format."""
    group = parser.add_mutually_exclusive_group()
    summaries = ', '.join(
        f'{each.name}: {each.summary}' for each in FORMATS.values()
    )
    group.add_argument(
        '--format',
        help=f'{summaries} (default: %(default)s)',
        default='onnx',
        choices=[*FORMATS],
    )
    for each in FORMATS.values():
        if each.has_flag:
            group.add_argument(
                each.flag,
                help=each.summary,
                action='store_const',
                const=each.name,
                dest='format',
                default=SUPPRESS,
            )


def add_option(parser, option: ExportOption):
    """Add an option of a format."""
    if option.default is False:
        parser.flag(option.flag, option.summary)
        return
    details = dict(type=option.convert)
    if option.bounds:
        details = dict(type=whole_number(*option.bounds))
    if option.choices:
        details['choices'] = option.choices
    parser.add(option.flag, option.summary, option.default, **details)


def check(args, export_format):
    """Refuse wrong paths and options of other formats.

    Return the options, and the format as they change it.
    """
    settings = export_format.select_options(vars(args))
    export_format = export_format.select_variant(settings)
    check_serving(args, export_format)
    suffix = export_format.suffix
    if args.out and suffix and args.out.suffix != suffix:
        raise Error(
            f'--out {args.out}: expected a file name ending in {suffix}'
        )
    if args.photos and not args.photos.is_dir():
        raise Error(f'--photos {args.photos} is not a folder')
    if args.out:
        is_folder = export_format.is_folder
        check_file(args.out / 'index.html' if is_folder else args.out)
    return settings, export_format


def check_serving(args, export_format):
    """Refuse to serve other formats, and options without a server."""
    is_app = export_format.name == 'web' and export_format.is_folder
    if args.serve and not is_app:
        raise Error('--serve needs --web, without --single-file')
    for name in ('port', 'host'):
        if vars(args)[name] is not None and not args.serve:
            raise Error(f'--{name} needs --serve')


def default_out(checkpoint, export_format):
    """Return the path of the file or folder next to the checkpoint."""
    if model_folder.is_fitted(checkpoint):
        model_folder.prepare_writing(Path(checkpoint))
    file = model_folder.find_model_file(checkpoint)
    if '://' in file:
        file = file.rpartition('/')[2]
    return export_format.name_file(Path(file))


def main(args):
    from mmclca.fitting.exporting import export_model

    settings, export_format = check(args, FORMATS[args.format])
    # a used port is found before the export, which takes a while
    server = open_server(args) if args.serve else None
    with model_files.quiet():
        out = args.out or default_out(args.checkpoint, export_format)
        with spinner('Exporting', sys.stderr):
            inferencer = model_files.load_inferencer(
                args, args.config, args.checkpoint, args.threshold
            )
            exported = export_model(
                inferencer, args.checkpoint, export_format, out, settings
            )
    report(exported, export_format, out, show_next=not server)
    if server:
        serve(server, out, exported.files)


def open_server(args):
    """Listen on the local network."""
    from mmclca.deployment.app_server import AppServer

    def say_refused():
        warn(
            'a browser refused the certificate: choose Advanced and Proceed '
            f'there, or install {server.certificate_address}'
        )

    server = AppServer(args.host, args.port or PORT, say_refused)
    return server


def serve(server, folder, files):
    """Serve an app until Ctrl-C, and show how to open it."""
    from mmclca.deployment.app_server import draw_qr_lines
    from mmclca.fitting.console_text import row

    with server.serving(folder, files):
        print_safe(*draw_qr_lines(server.address))
        print_safe(
            row('Phone', f'scan the code, or open {server.address}'),
            row('', 'in the network of this computer'),
            row(
                'Browser', 'warns once: this computer signed the certificate;'
            ),
            row('', 'choose Advanced, then Proceed (Safari: visit website)'),
            row(
                'Offline', 'only if the phone trusts the certificate: install'
            ),
            row('', f'{server.certificate_address}'),
            row('', '(docs/web_app.md has the steps; local addresses only)'),
            row('Stop', 'Ctrl-C'),
        )
        try:
            while True:
                time.sleep(1)  # on Windows, a longer one ignores Ctrl-C
        except KeyboardInterrupt:
            print_safe('Stopped')


def report(exported, export_format, out, show_next):
    """Print the checks, the size and the next steps."""
    from mmclca.fitting.console_text import row

    comparison = exported.comparison
    when = ', before quantization' if comparison else ''
    difference = f'{exported.difference:.1g}{when}'
    lines = [
        row('Checked', f'outputs match PyTorch (max. difference {difference})')
    ]
    if comparison:
        lines.append(row('Latency', comparison.latency))
        lines.append(row(comparison.label, comparison.agreement))
    size = sum(file.stat().st_size for file in exported.files) / 1e6
    lines.append(row('Saved', f'{out} ({size:.1f} MB)'))
    for label, step in export_format.next_steps if show_next else ():
        lines.append(row(label, step.format(out=quote(str(out)))))
    print_safe(*lines)
