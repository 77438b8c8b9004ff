# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""A page that names photographs: ``python -m mmclca page MODEL``."""

import signal
from pathlib import Path

from mmclca.utils.extras import require
from mmclca.utils.lazy import lazy

from .. import Parser, plain_errors
from ..arguments import add_checkpoint, add_model_arguments, add_reject

apis = lazy('mmclca.apis')
model_index = lazy('mmclca.model_index')
mmclca_page = lazy('mmclca.page')
server = lazy('mmclca.page.server')


def parse_args():
    parser = Parser(
        description='Serve a page on this computer: drop a leaf, see its '
        'name, what is left of it step by step, and the work it takes'
    )
    add_checkpoint(parser, ' (default: those of "make demo")', nargs='?')
    parser.add('--port', 'port (default: a free one from 7860 on)', type=int)
    parser.add(
        '--host',
        'address to listen at (default: %(default)s, reached from this '
        'computer alone). 0.0.0.0 shows the page to the whole network, '
        'without a password',
        '127.0.0.1',
    )
    add_reject(parser)
    add_model_arguments(parser)
    return parser.parse_args()


def trained(args):
    """A model, and the name of its checkpoint."""
    home = model_index.home()
    checkpoint = args.checkpoint or mmclca_page.trained_by_demo(home)
    options, device = args.cfg_options, args.device
    model = apis.TokenReductionInferencer(
        args.config, checkpoint, device, reject=args.reject, options=options
    )
    return model, Path(checkpoint).name


def main(args):
    # ended by its system, it removes what was uploaded as with Ctrl-C
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with plain_errors():
        require('gradio', extra='demo')
        model, name = trained(args)
        serving = server.served(model, args.port, args.host, name=name)
        with serving as (address, page):
            print(f'The page is at {address} until Ctrl-C is pressed.')
            page.block_thread()
