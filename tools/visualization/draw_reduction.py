# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Draw which patches each stage keeps, merges or mixes."""

import argparse
import sys
from pathlib import Path

import cv2
import mmcv
import numpy as np
import torch
from mmcv.transforms import Compose
from mmengine.config import Config
from mmengine.registry import init_default_scope
from mmengine.runner import load_checkpoint
from mmpretrain.registry import MODELS, TRANSFORMS

from mmclca.datasets.synthetic_leaves import draw_leaf, make_cultivars
from mmclca.models import TokenReductionViT
from mmclca.utils.command_line import add_cfg_options, merge_options
from mmclca.visualization import Reduced, draw_reductions, weights_by_stage

WEIGHTS = ('.bin', '.ckpt', '.pt', '.pth', '.safetensors')
PICTURES = ('.jpeg', '.jpg', '.pdf', '.png', '.svg', '.webp')


def parse_args():
    parser = argparse.ArgumentParser(
        description='Draw a row an image: the image, then each stage. '
        'Patches with a token of their own stay clear, those that share one '
        'take its mean colour and a border, dropped ones fade; where a patch '
        'goes into several tokens, its largest weight is its colour'
    )
    parser.add_argument('config', help='path of a config with a reducer')
    parser.add_argument(
        'files',
        nargs='*',
        metavar='[CHECKPOINT] IMAGE',
        help=f'weights ({" ".join(WEIGHTS)} or an address with ://; without, '
        'they are random), then images',
    )
    parser.add_argument(
        '--leaves',
        type=int,
        default=0,
        metavar='N',
        help='draw N synthetic leaves besides, each of another cultivar',
    )
    parser.add_argument(
        '--seed', type=int, default=0, help='of leaves and random weights'
    )
    parser.add_argument(
        '--out',
        type=Path,
        required=True,
        help=f'picture to write ({" ".join(PICTURES)})',
    )
    add_cfg_options(parser)
    args = parser.parse_args()
    first = args.files[0] if args.files else ''
    named = '://' in first or first.lower().endswith(WEIGHTS)
    args.checkpoint = args.files.pop(0) if named else None
    if args.leaves < 0 or not (args.files or args.leaves):
        parser.error(
            'nothing to draw: name images, or give --leaves 1 or more'
        )
    if args.out.suffix.lower() not in PICTURES:
        parser.error(f'--out {args.out}: must end in {" ".join(PICTURES)}')
    return args


def build(cfg, checkpoint):
    """The classifier of a config, with weights where there are any.

    Raises:
        ValueError: If there is nothing to draw of it.
    """
    preprocessor = cfg.get('data_preprocessor')
    cfg.model.pop('teacher', None)  # its files are not asked for
    model = MODELS.build(
        cfg.model, default_args=dict(data_preprocessor=preprocessor)
    )
    backbone = model.backbone
    if not (isinstance(backbone, TokenReductionViT) and backbone.reduce_at):
        raise ValueError(
            f'{cfg.filename}: a {type(backbone).__name__} that reduces '
            'nothing; give a config with backbone=dict(type='
            "'mmclca.TokenReductionViT', reducer=..., reduce_at=...)"
        )
    if checkpoint:
        load_checkpoint(model, checkpoint, map_location='cpu')
    else:
        print(
            'no checkpoint after the config: weights are random',
            file=sys.stderr,
        )
    return model.eval()


def read_images(paths):
    """Yield the name and the BGR image of files.

    Raises:
        ValueError: If some cannot be read; names all of them.
    """
    images = {path: read(path) for path in paths}
    bad = [path for path, image in images.items() if image is None]
    if bad:
        raise ValueError('not read, no images:\n  ' + '\n  '.join(bad))
    return [(Path(path).stem, image) for path, image in images.items()]


def read(path):
    try:
        return mmcv.imread(path)
    except (OSError, cv2.error):
        return None


def leaves(num_leaves, seed):
    """Names and BGR images of drawn leaves."""
    rng = np.random.default_rng(seed)
    cultivars = make_cultivars(num_leaves, seed) if num_leaves else []
    for number, cultivar in enumerate(cultivars, start=1):
        image = draw_leaf(cultivar, rng, size=448)
        yield f'drawn leaf {number}', np.ascontiguousarray(image[..., ::-1])


def transforms(cfg, img_size):
    """The test pipeline of a config, without what reads a file."""
    height, width = img_size
    pipeline = [
        dict(type='Resize', scale=(width, height), interpolation='bicubic'),
        dict(type='PackInputs'),
    ]
    if cfg.get('test_dataloader'):
        pipeline = cfg.test_dataloader.dataset.get('pipeline', pipeline)
    built = map(TRANSFORMS.build, pipeline)
    return Compose([t for t in built if 'Load' not in type(t).__name__])


def reduce(model, pipeline, title, image):
    """What a model makes of an image; one at a time, so none is padded."""
    shape = image.shape[:2]
    packed = pipeline(dict(img=image, img_shape=shape, ori_shape=shape))
    seen = packed['inputs']
    batch = model.data_preprocessor(dict(inputs=[seen]))['inputs']
    stages = weights_by_stage(model.backbone, batch)
    hw = tuple(model.backbone.patch_embed(batch)[1])
    seen = seen.flip(0).permute(1, 2, 0).contiguous().numpy()
    return Reduced(title, seen, hw, [weights[0] for weights in stages])


def draw(args):
    cfg = Config.fromfile(args.config)
    merge_options(cfg, args.cfg_options)
    init_default_scope('mmpretrain')
    images = [*read_images(args.files), *leaves(args.leaves, args.seed)]
    torch.manual_seed(args.seed)
    model = build(cfg, args.checkpoint)
    pipeline = transforms(cfg, model.backbone.img_size)
    with torch.inference_mode():
        rows = [reduce(model, pipeline, *image) for image in images]
    args.out.parent.mkdir(parents=True, exist_ok=True)
    layers = [f'after layer {layer}' for layer in model.backbone.reduce_at]
    draw_reductions(rows, args.out, layers)


def main():
    args = parse_args()
    try:
        draw(args)
    except (FileNotFoundError, ValueError) as error:
        sys.exit(f'{error}')
    print(args.out)


if __name__ == '__main__':
    main()
