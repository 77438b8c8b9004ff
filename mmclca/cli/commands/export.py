# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Write a trained model as one file that runs without mmclca. Input of ONNX
files: one RGB photo (H, W, 3), uint8, any size; output: logits (1, classes).
The file also stores class names and config. It is kept only if its outputs
match PyTorch; int8 files are made from a file that passed.

``python tools/deployment/export.py [CONFIG] CHECKPOINT``
"""

import sys
from dataclasses import asdict
from functools import partial
from glob import escape
from pathlib import Path
from shlex import quote
from shutil import copyfile
from tempfile import TemporaryDirectory

from mmclca.checkpoints import model_folder
from mmclca.errors import Error
from mmclca.utils.files import remove_partial_files, replace_file
from mmclca.utils.messages import print_safe, spinner

from .. import model_files
from ..arguments import CHECKPOINT, check_file, whole_number
from ..listing import Listing

LISTING = Listing(
    'fit and use', 'write the model as one ONNX file', 'deployment'
)


def add_arguments(parser):
    config = 'path or name of a config (default: stored in the checkpoint)'
    parser.add('config', config, nargs='?')
    parser.add('checkpoint', CHECKPOINT)
    parser.add(
        '--format',
        'ONNX, or pt2 for torch.export.load',
        'onnx',
        choices=['onnx', 'pt2'],
    )
    parser.add(
        '--input',
        'one RGB photo of any size, or a batch of normalized images',
        'photo',
        choices=['photo', 'batch'],
    )
    parser.add(
        '--out',
        'output file (default: name of the checkpoint, new ending) or folder',
        type=Path,
    )
    parser.add(
        '--opset',
        'ONNX operator set, 18 to 22',
        18,
        # ONNX Runtime fails on the Attention operator in opset 23 and above
        type=whole_number(18, 22),
    )
    parser.flag('--int8', '8-bit products and convolution weights, ONNX only')
    parser.flag('--web', 'web app for phones (a folder), 8-bit weights')
    parser.flag('--float', 'web app with 32-bit weights')
    parser.add('--name', 'name of the web app (default: title of the report)')
    parser.add(
        '--photos FOLDER',
        'photos for the 8-bit comparison, if changed since fit',
        type=Path,
    )
    parser.share('--threshold FILE', '--cfg-options')
    parser.set_defaults(device='cpu')


def check(args):
    if args.format == 'pt2' and (args.int8 or args.web):
        raise Error('--int8 and --web need --format onnx')
    if args.web and args.input == 'batch':
        raise Error('--web needs --input photo')
    if (args.float or args.name) and not args.web:
        raise Error('--float and --name need --web')
    if args.web and args.int8:
        raise Error('--int8 is not for --web, whose weights have 8 bits')
    if args.out and not args.web and args.out.suffix != f'.{args.format}':
        raise Error(
            f'--out {args.out}: expected a file name ending in .{args.format}'
        )
    if args.photos and not args.photos.is_dir():
        raise Error(f'--photos {args.photos} is not a folder')
    if args.out:
        check_file(args.out / 'index.html' if args.web else args.out)


def default_out(checkpoint, format, int8, web):
    """Return the checkpoint path with the suffix of the format, or the folder
    of the web app next to it.
    """
    if model_folder.is_fitted(checkpoint):
        model_folder.prepare_writing(Path(checkpoint))
    file = model_folder.find_model_file(checkpoint)
    if '://' in file:
        file = file.rpartition('/')[2]
    if web:
        return Path(file).with_name(model_folder.WEB)
    return Path(file).with_suffix(f'.int8.{format}' if int8 else f'.{format}')


def export(args, out):
    """Write the file; return the largest float32 difference from PyTorch
    logits, lines about 8 bits, and the written files.
    """
    from mmclca.benchmark import compare_quantized
    from mmclca.deployment import (
        add_preprocessing,
        check_photo,
        export_onnx,
        export_pt2,
        metadata_of,
        preprocessing_of,
        quantize,
        store_in_8_bits,
    )

    inferencer = model_files.load_inferencer(
        args, args.config, args.checkpoint, args.threshold
    )
    model = inferencer.model.eval()
    cfg = model._config
    preprocessing = preprocessing_of(cfg, model)
    threshold = inferencer.threshold and asdict(inferencer.threshold)
    metadata = metadata_of(
        cfg, model, preprocessing, inferencer.classes, threshold
    )
    size = preprocessing.size
    remove_partial_files(out.parent, *map(escape, (out.stem, out.suffix)))
    if args.format == 'pt2':
        error = export_pt2(model, out, size, metadata)
        return error, [], [out]
    with TemporaryDirectory() as folder:
        whole, small = Path(folder, 'model.onnx'), Path(folder, 'int8.onnx')
        error = export_onnx(model, whole, size, metadata, args.opset)
        files, compared = [whole], []
        if args.int8:
            # in the web app, 8-bit products change too many predictions
            store = store_in_8_bits
            (store if args.web else quantize)(whole, small)
            given = whole, small, size, args.checkpoint, args.photos
            compared = compare_quantized(inferencer, *given)
            files.append(small)
        if args.input == 'photo':
            for file in files:
                add_preprocessing(file, preprocessing)
            check_photo(model, whole, cfg)
        replace_file(out, partial(copyfile, files[-1]))
    return error, compared, [out]


def export_web(args, out):
    """Write the folder of a web app; return the same as :func:`export`."""
    from mmclca.deployment import check_web_runtime, write_web_app
    from mmclca.fitting.record import FitFolder
    from mmclca.fitting.screen import describe_claim

    check_web_runtime()
    args.int8, accuracy = not args.float, ''
    path = Path(args.checkpoint).resolve()
    name = path.name if path.is_dir() else path.stem
    if model_folder.is_fitted(path):
        files = FitFolder(path)
        with files.blame_facts():
            record = files.read()
            accuracy = describe_claim(record)
            name = files.name_model(record)
    with TemporaryDirectory() as folder:
        model = Path(folder, 'model.onnx')
        *found, _ = export(args, model)
        name = args.name or name
        return *found, write_web_app(out, model, name, accuracy)


def main(args):
    check(args)
    with model_files.quiet():
        kind = args.format, args.int8, args.web
        out = args.out or default_out(args.checkpoint, *kind)
        with spinner('Exporting', sys.stderr):
            write = export_web if args.web else export
            error, compared, files = write(args, out)
    when = ', before quantization' if args.int8 else ''
    print_safe(
        f'Checked    outputs match PyTorch (max. difference {error:.1g}{when})'
    )
    size = sum(x.stat().st_size for x in files) / 1e6
    print_safe(*compared, f'Saved      {out} ({size:.1f} MB)')
    if args.web:
        serve = f'python -m http.server --directory {quote(str(out))}'
        print_safe(
            'Next       copy the folder to a web host with https '
            '(docs/web_app.md lists some),',
            f'{"":<11}and open its address on the phone',
            f'Try it     {serve}',
            f'{"":<11}and open http://localhost:8000 on this computer',
        )
    elif args.format == 'onnx':
        tool = 'python tools/deployment/infer_onnx.py'
        print_safe(f'Next       {tool} {quote(str(out))} PHOTOS')
