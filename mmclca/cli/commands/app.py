# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""What ``demo/app.py`` does."""

import signal
from pathlib import Path

from mmclca.page import trained_by_demo
from mmclca.utils.extras import require

from .. import plain_errors
from ..model_files import load


def trained(args, root):
    """A model, and the name of its checkpoint."""
    checkpoint = args.checkpoint or trained_by_demo(root)
    options, device = args.cfg_options, args.device
    model = load(args.config, checkpoint, options, device, args.reject)
    return model, Path(checkpoint).name


def main(args, root):
    # ended by its system, it removes what was uploaded as with Ctrl-C
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with plain_errors():
        require('gradio', extra='demo')
        from mmclca.page.server import served

        model, name = trained(args, root)
        serving = served(model, args.port, args.host, name=name)
        with serving as (address, page):
            print(f'The page is at {address} until Ctrl-C is pressed.')
            page.block_thread()
