# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Export a model: ``export.py [CONFIG] CHECKPOINT``."""

from dataclasses import asdict
from pathlib import Path

from mmclca.checkpoints import fitted
from mmclca.utils.lazy import lazy

from .. import Parser, plain_errors
from ..arguments import add_cfg_options, add_reject, check_file

apis = lazy('mmclca.apis')
deployment = lazy('mmclca.deployment')
onnx_file = lazy('mmclca.deployment.onnx_file')


def parse_args():
    parser = Parser(
        description='Write a trained model as one file that runs without '
        'mmclca: from normalized images (B, 3, H, W), float32, any B, to '
        'logits (B, classes). The file holds the preparation of images, the '
        'class names and the config too. It is kept only if its logits are '
        'those of PyTorch; int8 files are made of one that passed'
    )
    parser.add(
        'config',
        'path or name of a config (without, the one in the checkpoint)',
        nargs='?',
    )
    parser.add('checkpoint', 'path or URL of the weights')
    parser.add(
        '--format',
        'ONNX, or what torch.export.load reads',
        'onnx',
        choices=['onnx', 'pt2'],
    )
    parser.add(
        '--out',
        'the file to write (default: the name of the checkpoint with the '
        'ending of the format, in its folder)',
        type=Path,
    )
    parser.add(
        '--opset',
        "version of ONNX's operators (default: 18, the oldest)",
        type=int,
    )
    parser.flag(
        '--int8',
        '8-bit matrix products in the ONNX file (dynamic quantization): '
        'smaller, other logits',
    )
    add_reject(parser)
    add_cfg_options(parser)
    args = parser.parse_args()
    check(parser, args)
    return args


def check(parser, args):
    if args.format == 'pt2' and (args.int8 or args.opset):
        parser.error('--int8 and --opset are of --format onnx')
    if args.opset and args.opset < onnx_file.OLDEST_OPSET:
        parser.error(
            f'--opset {args.opset}: at least {onnx_file.OLDEST_OPSET}'
        )
    if args.out and args.out.suffix != f'.{args.format}':
        parser.error(f'--out {args.out}: the name must end in .{args.format}')
    if args.out:
        check_file(parser, args.out)


def default_out(checkpoint, format, int8):
    """Where the file goes unless it is told."""
    file = fitted.model_file(checkpoint)
    if '://' in file:
        file = file.rpartition('/')[2]
    ending = f'.int8.{format}' if int8 else f'.{format}'
    return Path(file).with_suffix(ending)


def export(args, out):
    """Write the file; gives the largest difference of its logits."""
    inferencer = apis.TokenReductionInferencer(
        args.config,
        args.checkpoint,
        'cpu',
        reject=args.reject,
        options=args.cfg_options,
    )
    cfg = inferencer.model._config
    model = inferencer.model.eval()
    preprocessing = deployment.preprocessing_of(cfg, model)
    threshold = inferencer.threshold and asdict(inferencer.threshold)
    metadata = deployment.metadata_of(
        cfg, model, preprocessing, inferencer.classes, threshold
    )
    if args.format == 'pt2':
        return deployment.export_pt2(model, preprocessing.size, out, metadata)
    opset = args.opset or onnx_file.OLDEST_OPSET
    return deployment.export_onnx(
        model, preprocessing.size, out, metadata, opset, args.int8
    )


def main(args):
    names = filter(None, (args.config, args.checkpoint))
    with plain_errors(', '.join(names)):
        out = args.out or default_out(args.checkpoint, args.format, args.int8)
        error = export(args, out)
    when = 'before the 8-bit quantization' if args.int8 else 'in float32'
    print(
        f'{out}: {out.stat().st_size / 1e6:.1f} MB; {when} its logits '
        f'differ from those of PyTorch by at most {error:.1g}'
    )
