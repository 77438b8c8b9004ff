# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""What ``tools/deployment/export.py`` does."""

from dataclasses import asdict
from pathlib import Path

from mmclca.apis import TokenReductionInferencer
from mmclca.checkpoints.downloading import open_checkpoint
from mmclca.checkpoints.stored import stored_config
from mmclca.configs import check_patches, read_config, require_settings
from mmclca.deployment import (
    export_onnx,
    export_pt2,
    metadata_of,
    preprocessing_of,
)
from mmclca.deployment.onnx_file import OLDEST_OPSET

from .. import plain_errors


def default_out(checkpoint, format, int8):
    """Where the file goes unless it is told."""
    if '://' in checkpoint:
        checkpoint = checkpoint.rpartition('/')[2]
    ending = f'.int8.{format}' if int8 else f'.{format}'
    return Path(checkpoint).with_suffix(ending)


def config_of(args):
    """The config that is named, else the one in the checkpoint."""
    if args.config is not None:
        return read_config(args.config, args.cfg_options)
    return stored_config(open_checkpoint(args.checkpoint, mapped=True))


def export(args, out):
    """Write the file; gives the largest difference of its logits."""
    cfg = config_of(args)
    require_settings(cfg, 'model')
    check_patches(cfg)
    inferencer = TokenReductionInferencer(
        cfg, args.checkpoint, 'cpu', reject=args.reject
    )
    model = inferencer.model.eval()
    preprocessing = preprocessing_of(cfg, model)
    threshold = inferencer.threshold and asdict(inferencer.threshold)
    metadata = metadata_of(
        cfg, model, preprocessing, inferencer.classes, threshold
    )
    if args.format == 'pt2':
        return export_pt2(model, preprocessing.size, out, metadata)
    opset = args.opset or OLDEST_OPSET
    return export_onnx(
        model, preprocessing.size, out, metadata, opset, args.int8
    )


def main(args):
    out = args.out or default_out(args.checkpoint, args.format, args.int8)
    names = filter(None, (args.config, args.checkpoint))
    with plain_errors(', '.join(names)):
        error = export(args, out)
    when = 'before the 8-bit quantization' if args.int8 else 'in float32'
    print(
        f'{out}: {out.stat().st_size / 1e6:.1f} MB; {when} its logits '
        f'differ from those of PyTorch by at most {error:.1g}'
    )
