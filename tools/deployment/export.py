# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Export a model: ``python tools/deployment/export.py CONFIG CHECKPOINT``."""

import argparse
from pathlib import Path

from mmengine.config import Config

from mmclca.apis import TokenReductionInferencer
from mmclca.deployment import (
    export_onnx,
    export_pt2,
    metadata_of,
    preparation_of,
)
from mmclca.deployment.onnx_file import OLDEST_OPSET
from mmclca.utils.command_line import (
    add_cfg_options,
    check_file,
    merge_options,
)


def parse_args():
    parser = argparse.ArgumentParser(
        description='Write a trained model as one file that runs without '
        'mmclca: from normalized images (B, 3, H, W), float32, any B, to '
        'logits (B, classes). The file holds the preparation of images, the '
        'class names and the config too. It is kept only if its logits are '
        'those of PyTorch; int8 files are made of one that passed'
    )
    parser.add_argument('config', help='path of the config')
    parser.add_argument('checkpoint', help='path or URL of the weights')
    parser.add_argument(
        '--format',
        choices=['onnx', 'pt2'],
        default='onnx',
        help='ONNX, or what torch.export.load reads (default: %(default)s)',
    )
    parser.add_argument(
        '--out',
        type=Path,
        help='the file to write (default: the name of the checkpoint with '
        'the ending of the format, in its folder)',
    )
    parser.add_argument(
        '--opset',
        type=int,
        help=f"version of ONNX's operators (default: {OLDEST_OPSET})",
    )
    parser.add_argument(
        '--int8',
        action='store_true',
        help='8-bit matrix products in the ONNX file (dynamic quantization): '
        'smaller, other logits',
    )
    add_cfg_options(parser)
    args = parser.parse_args()
    check(parser, args)
    return args


def check(parser, args):
    if args.format == 'pt2' and (args.int8 or args.opset):
        parser.error('--int8 and --opset are of --format onnx')
    if args.opset and args.opset < OLDEST_OPSET:
        parser.error(f'--opset {args.opset}: at least {OLDEST_OPSET}')
    if args.out and args.out.suffix != f'.{args.format}':
        parser.error(f'--out {args.out}: the name must end in .{args.format}')
    if args.out:
        check_file(parser, args.out)


def default_out(checkpoint, format, int8):
    """Where the file goes unless it is told."""
    if '://' in checkpoint:
        checkpoint = checkpoint.rpartition('/')[2]
    ending = f'.int8.{format}' if int8 else f'.{format}'
    return Path(checkpoint).with_suffix(ending)


def main():
    args = parse_args()
    out = args.out or default_out(args.checkpoint, args.format, args.int8)
    cfg = Config.fromfile(args.config)
    merge_options(cfg, args.cfg_options)
    inferencer = TokenReductionInferencer(cfg, args.checkpoint, 'cpu')
    model = inferencer.model.eval()
    preparation = preparation_of(cfg, model)
    metadata = metadata_of(cfg, model, preparation, inferencer.classes)
    size = preparation.size
    if args.format == 'pt2':
        error = export_pt2(model, size, out, metadata)
    else:
        opset = args.opset or OLDEST_OPSET
        error = export_onnx(model, size, out, metadata, opset, args.int8)
    when = 'ahead of the 8-bit quantization' if args.int8 else 'in float32'
    print(
        f'{out}: {out.stat().st_size / 1e6:.1f} MB; {when} its logits '
        f'differ from those of PyTorch by at most {error:.1g}'
    )


if __name__ == '__main__':
    main()
