# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Look at what a model is sure of, rightly and wrongly: ``python
tools/analysis_tools/analyze_results.py CONFIG RESULTS --out-dir FOLDER``."""

from pathlib import Path

from mmclca.utils.lazy import lazy

from .. import Parser, plain_errors
from ..arguments import add_cfg_options, factor, positive

configs = lazy('mmclca.configs')
decoding = lazy('mmclca.datasets.decoding')
evaluation_predictions = lazy('mmclca.evaluation.predictions')
figures = lazy('mmclca.visualization.figures')
batches = lazy('mmclca.datasets.batches')
mmcv = lazy('mmcv')
mmengine = lazy('mmengine')
np = lazy('numpy')

# of a result
KEYS = ('sample_idx', 'gt_label', 'pred_label', 'pred_score')


def parse_args():
    parser = Parser(
        description='Write pictures of the best images of a test (right, with '
        'the highest scores) and of the worst (wrong, with the highest '
        'scores), with their classes, and the same as JSON'
    )
    parser.add('config', 'path or name of a config')
    parser.add('result', 'the .pkl of tools/test.py --out')
    parser.add('--out-dir', 'folder to write to', type=Path, required=True)
    parser.add('--topk', 'pictures of each kind', 20, type=positive)
    parser.add(
        '-r --rescale-factor',
        'of the size at which images are drawn, 320 px high by default',
        1.0,
        type=factor,
    )
    add_cfg_options(parser)
    return parser.parse_args()


def predictions(results):
    """One dict an image, those of the highest score first."""
    plain = [{k: np.asarray(row[k]).tolist() for k in KEYS} for row in results]
    return sorted(plain, key=lambda one: -max(one['pred_score']))


def read_image(info):
    """The RGB image of a sample, and its name."""
    if 'img' in info:
        return info['img'], str(info['sample_idx'])
    image = decoding.read_bgr(info['img_path'])[..., ::-1]
    return image, Path(info['img_path']).stem


def heading_of(prediction, classes):
    """Predicted class with its score, and the true class."""

    def named(labels):
        return ', '.join(classes[i] if classes else str(i) for i in labels)

    score = max(prediction['pred_score'])
    predicted, true = prediction['pred_label'], prediction['gt_label']
    return f'{named(predicted)}, {score:.3f}\ntruth: {named(true)}'


def save(chosen, dataset, folder, rescale_factor):
    """Write pictures by rank, and what is in them as JSON."""
    folder.mkdir(parents=True, exist_ok=True)
    classes = dataset.metainfo.get('classes')
    for rank, one in enumerate(chosen, start=1):
        image, name = read_image(dataset.get_data_info(one['sample_idx']))
        heading = heading_of(one, classes)
        drawn = figures.side_by_side([(name, image)], heading, rescale_factor)
        mmcv.imwrite(drawn[..., ::-1], str(folder / f'{rank:03}_{name}.png'))
    mmengine.dump(chosen, folder / f'{folder.name}.json')
    print(f'{folder}: {len(chosen)}')


def analyze(args):
    cfg = configs.read_config(args.config, args.cfg_options)
    results = evaluation_predictions.read_predictions(args.result, *KEYS)
    dataset = batches.dataset_of(cfg, pipeline=[])
    if len(results) != len(dataset):
        raise ValueError(
            f'{args.result} has {len(results)} predictions, the test set of '
            f'the config {len(dataset)} images: are they of one test?'
        )
    kinds = dict(success=[], fail=[])
    for one in predictions(results):
        right = one['pred_label'] == one['gt_label']
        kinds['success' if right else 'fail'].append(one)
    for kind, found in kinds.items():
        folder = args.out_dir / kind
        save(found[: args.topk], dataset, folder, args.rescale_factor)


def main(args):
    with plain_errors(args.config):
        analyze(args)
