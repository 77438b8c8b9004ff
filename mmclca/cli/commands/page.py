# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Serve a local web page to train a model on photos and identify photos.

``python -m mmclca page MODEL``
"""

import os
import signal
import socket
from argparse import ArgumentTypeError
from pathlib import Path

from mmclca.errors import Error
from mmclca.languages import list_languages
from mmclca.utils.extras import require
from mmclca.utils.messages import print_safe, warn

from .. import model_files
from ..arguments import CHECKPOINT, whole_number
from ..listing import Listing

LISTING = Listing(
    'fit and use', 'train a model and identify photos in the browser', 'page'
)

LOGIN = 'MMCLCA_PAGE_LOGIN'
HERE = 'localhost', '::1'


def add_arguments(parser):
    default = ' (default: train one on the page)'
    parser.add('checkpoint', CHECKPOINT + default, nargs='?')
    out = 'without a model: folder for photos and models (default: models)'
    parser.add('--out FOLDER', out, type=Path)
    weights = 'without a model: pretrained weights, as in fit'
    parser.add('--weights FILE', weights)
    parser.share('--config')
    port = 'port (default: first free port from 7860)'
    parser.add('--port', port, type=whole_number(1, 65535))
    parser.add(
        '--host',
        'address; 0.0.0.0 opens the page to the network, see --auth',
        '127.0.0.1',
        type=local_address,
    )
    parser.add(
        '--auth USER:PASSWORD',
        f'login to the page (default: environment variable {LOGIN})',
        os.environ.get(LOGIN),
        type=login,
    )
    language = 'language of the page (default: that of the browser)'
    parser.add('--language CODE', language, choices=list_languages())
    parser.share('--index FILE', '--threshold FILE')
    parser.share('--device', '--cfg-options')


def login(argument):
    """Split a login into name and password."""
    name, _, password = argument.partition(':')
    if not (name and password):
        raise ArgumentTypeError('expected USER:PASSWORD')
    return name, password


def local_address(host):
    """Refuse an address where a server cannot listen, before loading.

    An IPv6 address may be in brackets, as in a web address.
    """
    if host.startswith('[') and host.endswith(']'):
        host = host[1:-1]
    try:
        addresses = socket.getaddrinfo(host, 0, type=socket.SOCK_STREAM)
        family, socket_type, *_, address = addresses[0]
        with socket.socket(family, socket_type) as test:
            test.bind(address)
    except (OSError, UnicodeError) as error:
        raise ArgumentTypeError(
            f'{host} is not an address of this computer ({error}); omit '
            '--host, or give 0.0.0.0'
        ) from error
    return host


def check(args):
    """Refuse options for the other kind of page."""
    needs, names = 'a model', ('config', 'index', 'threshold', 'cfg_options')
    if args.checkpoint:
        needs, names = 'no model', ('out', 'weights')
    for name in names:
        if vars(args)[name]:
            raise Error(f'--{name.replace("_", "-")} needs {needs}')


def open_model(args):
    """Load the model of the page, and its gallery."""
    from mmclca.page import open_model

    model = model_files.load_inferencer(
        args, args.config, args.checkpoint, args.threshold
    )
    gallery = args.index and read_gallery(args.index, model)
    return open_model(args.checkpoint, model, gallery)


def open_form(args, identify_tab):
    """Create the folder of the form, and the form."""
    from mmclca.page.form import FitForm

    settings = dict(weights=args.weights, device=args.device)
    out = (args.out or Path('models')).absolute()
    out.mkdir(parents=True, exist_ok=True)
    return FitForm(identify_tab, out, settings)


def read_gallery(path, model):
    from mmclca.apis.gallery import read_gallery
    from mmclca.evaluation.open_set import fingerprint

    return read_gallery(path, fingerprint(model.model), 'pre_logits')


def serve_page(args, model):
    from mmclca.page.identify import IdentifyTab
    from mmclca.page.server import serve, uploads_folder

    with uploads_folder(args.host) as folder:
        tab = IdentifyTab(folder, model)
        form = None if model else open_form(args, tab)
        page = serve(tab, args.port, args.host, args.auth, form, args.language)
        with page as (address, blocks):
            print_safe(f'Page       {address} (stop with Ctrl-C)')
            blocks.block_thread()


def main(args):
    # remove uploads on SIGTERM as on Ctrl-C
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    check(args)
    require('gradio', extra='demo')
    is_here = args.host in HERE or args.host.startswith('127.')
    if not (args.auth or is_here):
        warn(
            f'everyone who can reach {args.host} can use this page; add '
            '--auth USER:PASSWORD'
        )
    with model_files.quiet():
        serve_page(args, args.checkpoint and open_model(args))
