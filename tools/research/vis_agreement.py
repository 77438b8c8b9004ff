# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Draw the pairwise disagreement between models; for a distilled model
by CLS token, distillation token and both. A second panel shows the
similarity of these two tokens in each layer.

``python tools/research/vis_agreement.py CONFIG CHECKPOINT --other CONFIG
CHECKPOINT --out agreement.png``
"""

from pathlib import Path

from decisions import decisions, token_cosines
from layer_figures import check_classes, draw_agreement
from vis_cka import check_same_images, open_split

from mmclca import cli
from mmclca.cli.picture_inputs import add_split, load_model


def add_arguments(parser):
    add_split(parser)
    parser.add(
        '--other',
        'further model, repeatable',
        nargs='+',
        action='append',
        metavar='[CONFIG] CHECKPOINT',
    )
    parser.share('--batch-size')


def draw(args):
    rows, cosines = {}, {}
    seen, classes = [], []
    for n, files in enumerate((args.files, *(args.other or ())), start=1):
        model, read, names = open_split(args, load_model(args, files))
        seen.append(names)
        classes.append(model._dataset_meta['classes'])
        name = f'{n}. {Path(files[-1]).stem}'
        labels = decisions(name, model, image_batches(read))
        rows.update(labels)
        if len(labels) > 1:
            cosines[name] = token_cosines(model, image_batches(read))
    check_same_images(args, seen)
    check_classes(classes)
    draw_agreement(rows, cosines, args.out)
    return args.out


def image_batches(read):
    """Yield the image tensor of each batch."""
    return (batch.images for batch in read())


def main():
    parser = cli.Parser(__doc__)
    add_arguments(parser)
    args = parser.parse_args()
    print(f'Saved      {draw(args)}')


if __name__ == '__main__':
    cli.run(main)
