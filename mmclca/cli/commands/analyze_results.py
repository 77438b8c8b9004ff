# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Draw the best predictions of a test (correct, highest scores) and the worst
(wrong, highest scores) with their classes, and write the same as JSON.

``python tools/analysis_tools/analyze_results.py CONFIG RESULTS --out-dir DIR``
"""

from pathlib import Path

from mmclca.errors import Error
from mmclca.utils.messages import print_safe

from ..arguments import positive
from ..listing import Listing

LISTING = Listing('analyze', 'draw the best and worst predictions of a test')

# required keys of a prediction
KEYS = ('sample_idx', 'gt_label', 'pred_label', 'pred_score')


def add_arguments(parser):
    parser.share('config')
    parser.add('result', '.pkl file of tools/test.py --out')
    parser.add('--out-dir', 'output folder', type=Path, required=True)
    parser.add('--topk', 'best and worst images to draw', 20, type=positive)
    parser.share('-r --rescale-factor', '--cfg-options')


def read_image(info):
    """Return the RGB image and the name of a sample."""
    from mmclca.datasets.decoding import read_bgr

    if 'img' in info:
        return info['img'], str(info['sample_idx'])
    image = read_bgr(info['img_path'])[..., ::-1]
    return image, Path(info['img_path']).stem


def save(chosen, dataset, folder, rescale_factor):
    """Write ranked pictures and their predictions as JSON."""
    import mmengine
    import torch
    from mmpretrain.structures import DataSample
    from mmpretrain.visualization import UniversalVisualizer

    folder.mkdir(parents=True, exist_ok=True)
    visualizer = UniversalVisualizer()
    for rank, prediction in enumerate(chosen, start=1):
        image, name = read_image(
            dataset.get_data_info(prediction['sample_idx'])
        )
        sample = DataSample()
        sample.set_gt_label(prediction['gt_label']).set_pred_label(
            prediction['pred_label']
        )
        visualizer.visualize_cls(
            image,
            sample.set_pred_score(torch.tensor(prediction['pred_score'])),
            dataset.metainfo.get('classes'),
            resize=320,
            rescale_factor=rescale_factor,
            out_file=str(folder / f'{rank:03}_{name}.png'),
        )
    mmengine.dump(chosen, folder / f'{folder.name}.json')
    print_safe(f'Saved      {folder} ({len(chosen)} pictures)')


def analyze(args):
    import numpy as np

    from mmclca.configs import read_config
    from mmclca.datasets.batches import build_dataset
    from mmclca.evaluation.predictions import read_predictions

    cfg = read_config(args.config, args.cfg_options)
    results = read_predictions(args.result, *KEYS)
    dataset = build_dataset(cfg, pipeline=[])
    if len(results) != len(dataset):
        raise Error(
            f'{args.result} has {len(results)} predictions, the test set '
            f'{len(dataset)} images: use config and results of one test'
        )
    kinds = dict(success=[], fail=[])
    plain = [{k: np.asarray(row[k]).tolist() for k in KEYS} for row in results]
    for prediction in sorted(plain, key=lambda x: -max(x['pred_score'])):
        right = prediction['pred_label'] == prediction['gt_label']
        kinds['success' if right else 'fail'].append(prediction)
    for outcome, predictions in kinds.items():
        folder = args.out_dir / outcome
        save(predictions[: args.topk], dataset, folder, args.rescale_factor)


def main(args):
    analyze(args)
