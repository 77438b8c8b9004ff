# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Count multiply-accumulates (with attention and LayerNorm, without
activations), parameters and tokens of a model for one image.

``python tools/analysis_tools/get_flops.py CONFIG``
"""

import json
import sys
from contextlib import redirect_stdout
from dataclasses import asdict

from mmclca.errors import Error

from ..arguments import positive
from ..listing import Listing

LISTING = Listing('analyze', 'count GMACs, parameters and tokens', 'training')


def add_arguments(parser):
    parser.add('config', 'config, checkpoint or model folder')
    parser.add(
        '--shape',
        'image size in pixels (default: img_size of the backbone)',
        nargs='+',
        type=positive,
        metavar=('HEIGHT', 'WIDTH'),
    )
    parser.flag('--json', 'JSON instead of a table')
    parser.share('--cfg-options')


def count_cost(config, cfg_options, shape):
    """Compute the cost of a configured model; logs go to stderr."""
    from mmclca.apis.loading import config_and_weights
    from mmclca.building import config_errors
    from mmclca.configs import check_patches, require_settings
    from mmclca.evaluation.cost import count_config

    with redirect_stdout(sys.stderr):
        if shape and len(shape) > 2:
            raise Error(f'--shape {shape}: expected one or two numbers')
        with config_errors(config):
            cfg, _ = config_and_weights(config, None, cfg_options)
            require_settings(cfg, 'model')
            sides = shape and (shape[0], shape[-1])
            check_patches(cfg, sides)
            return count_config(cfg.model, sides)


def table_lines(cost):
    """Format the cost as table lines."""
    height, width = cost.shape
    yield f'Image      {height} x {width} pixels, batch size 1, inference'
    yield f'Cost       {cost.flops / 1e9:.3f} GMACs'
    if cost.distances:
        yield f'Distances  {cost.distances / 1e9:.3f} GMACs (not in the cost)'
    yield f'Parameters {cost.params / 1e6:.3f} M'
    if cost.parts:
        yield '\n    GMACs   share  component'
    for part, flops in cost.parts.items():
        share = flops / cost.flops
        yield f'{flops / 1e9:9.3f}  {share:6.1%}  {part}'
    if cost.tokens:
        yield '\nlayer  attention tokens  output tokens (without cached ones)'
    lengths = zip(cost.attended, cost.tokens, strict=True)
    for layer, (attended, tokens) in enumerate(lengths):
        yield f'{layer:5}  {attended:16}  {tokens:13}'


def main(args):
    cost = count_cost(args.config, args.cfg_options, args.shape)
    if args.json:
        print(json.dumps(asdict(cost)))
    else:
        print('\n'.join(table_lines(cost)))
