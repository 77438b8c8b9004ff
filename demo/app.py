# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""A page that names leaves: ``python demo/app.py [CKPT]``."""

import argparse
import signal
from pathlib import Path

from mmclca.demo import trained_by_demo
from mmclca.utils.command_line import plain_errors
from mmclca.utils.extras import require
from mmclca.visualization.model_files import (
    add_config_argument,
    add_model_arguments,
    load,
)

ROOT = Path(__file__).resolve().parents[1]


def parse_args():
    parser = argparse.ArgumentParser(
        description='Serve a page on this computer: drop a leaf, see its '
        'name, what is left of it step by step, and the work it takes'
    )
    parser.add_argument(
        'checkpoint',
        nargs='?',
        help='path or URL of the weights, which hold config and class names '
        '(default: those of "make demo")',
    )
    add_config_argument(parser)
    parser.add_argument(
        '--port', type=int, help='port (default: a free one from 7860 on)'
    )
    parser.add_argument(
        '--host',
        default='127.0.0.1',
        help='address to listen at (default: %(default)s, reached from this '
        'computer alone). 0.0.0.0 shows the page to the whole network, '
        'without a password',
    )
    add_model_arguments(parser)
    return parser.parse_args()


def trained(args):
    """A model, and the name of its checkpoint."""
    checkpoint = args.checkpoint or trained_by_demo(ROOT)
    model = load(args.config, checkpoint, args.cfg_options, args.device)
    return model, Path(checkpoint).name


def main():
    args = parse_args()
    # ended by its system, it removes what was uploaded as with Ctrl-C
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with plain_errors('demo/app.py'):
        require('gradio', extra='demo')
        from mmclca.demo.server import served

        model, name = trained(args)
        serving = served(model, args.port, args.host, name=name)
        with serving as (address, page):
            print(f'The page is at {address} until Ctrl-C is pressed.')
            page.block_thread()


if __name__ == '__main__':
    main()
