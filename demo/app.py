# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""A page that names leaves: ``python demo/app.py [CKPT]``."""

import argparse
from pathlib import Path

import torch

from mmclca.apis import TokenReductionInferencer
from mmclca.demo import trained_by_demo
from mmclca.utils.command_line import plain_errors, read_config
from mmclca.utils.extras import require

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
    parser.add_argument(
        '--config',
        help='path or name of a config to use in place of the one in the '
        'checkpoint',
    )
    parser.add_argument(
        '--device',
        default='cuda' if torch.cuda.is_available() else 'cpu',
        help='where to run the model (default here: %(default)s)',
    )
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
    return parser.parse_args()


def load(args):
    checkpoint = args.checkpoint or trained_by_demo(ROOT)
    if not args.config:
        return TokenReductionInferencer(checkpoint, device=args.device)
    config = read_config(args.config)
    return TokenReductionInferencer(config, checkpoint, args.device)


def main():
    args = parse_args()
    with plain_errors('demo/app.py'):
        require('gradio', extra='demo')
        from mmclca.demo.server import served

        with served(load(args), args.port, args.host) as (address, page):
            print(f'The page is at {address} until Ctrl-C is pressed.')
            page.block_thread()


if __name__ == '__main__':
    main()
