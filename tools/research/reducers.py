# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Frozen networks with each reducer, over several sets of photographs.

``MMCLCA_DATA=DATA MMCLCA_WEIGHTS=WEIGHTS python tools/research/reducers.py``
measures what ``docs/results/reducers`` does not hold.
"""

import os
import sys
from pathlib import Path

import torch
import torch.nn.functional as F
from mmengine.config import Config
from probes import fit_and_test, kept, read_list

from mmclca.apis import load_classifier
from mmclca.checkpoints.opening import open_checkpoint
from mmclca.datasets.batches import Preparation, batches
from mmclca.evaluation.cost import count_config
from mmclca.models import with_layer_fusion
from mmclca.sweep.compose import NONE, Cell, compose
from mmclca.utils.provenance import provenance

GRID = Config.fromfile('configs/sweeps/reducers.py').to_dict()
RESULTS = Path('docs/results/reducers')
DATA = Path(os.environ.get('MMCLCA_DATA', 'data'))
WEIGHTS = Path(os.environ.get('MMCLCA_WEIGHTS', 'weights'))
RIDGE = dict(classifier='ridge', strength=None)
READ = 9  # layers whose averages are read, as by fit


def draws():
    """Return labels by path of training and test images, by set."""
    leaf40 = DATA / 'leaf40'
    found = dict(leaf40=[
        {str(leaf40 / 'images' / path): label for path, label in lines.items()}
        for lines in (read_list(leaf40 / f'{s}.txt') for s in GRID['splits'])
    ])
    for folder in sorted(DATA.glob('sets/*/')):
        names = sorted(path.name for path in folder.glob('train/*'))
        found[folder.name] = [
            {
                str(path): names.index(path.parent.name)
                for path in sorted(folder.glob(f'{split}/*/*'))
            }
            for split in GRID['splits']
        ]
    return found


def config_of(backbone, method, keep_rate, options):
    """Return the config of a network all of whose layers are read."""
    cell = Cell('leaf40', backbone, method, keep_rate, 224, 'base', seed=1)
    config = compose(cell)
    if options:
        config.model.backbone.reducer.update(options)
    config.model = with_layer_fusion(config.model, range(12), 'cls_average')
    return config


@torch.no_grad()
def outputs(config, weights, files):
    """Compute what is read of each image.

    Returns:
        tuple[Tensor, ...]: CLS after the last norm (N, C), scores of the
        classes of the weights (N, K), and averages of layers (N, READ C).
    """
    torch.manual_seed(0)  # of reducers that have to be trained
    model = load_classifier(config, weights, new_last_layer=True).eval()
    state = open_checkpoint(weights)
    state = state.get('model', state.get('state_dict', state))
    prepare, found = Preparation(config), []
    for batch in batches(model, files, prepare=prepare):
        parts = torch.stack(model.backbone(batch.images)).unflatten(2, (2, -1))
        averages = F.layer_norm(parts[:READ, :, 1], parts.shape[-1:])
        found.append((parts[-1, :, 0], averages.transpose(0, 1).flatten(1)))
    cls, averages = map(torch.cat, zip(*found, strict=True))
    norm = state['norm.weight'], state['norm.bias'], 1e-6
    cls = F.layer_norm(cls, cls.shape[-1:], *norm)
    head = state['head.weight'], state['head.bias']
    return cls, F.linear(cls, *head), averages


def measure(backbone, method, keep_rate, options, sets, full):
    """Compare a reduced network with the full one, set by set."""
    config = config_of(backbone, method, keep_rate, options)
    weights = str(WEIGHTS / GRID['weights'][backbone])
    results = {}
    for name, (train, test) in sets.items():
        files = [*train, *test]
        cls, scores, averages = outputs(config, weights, files)
        whole = full.setdefault((backbone, name), (cls, scores))
        probes = {
            f'accuracy_{key}': fit_and_test(
                RIDGE, dict(zip(files, x, strict=True)), train, test
            )['accuracy']
            for key, x in (('cls', cls), ('layers', averages))
        }
        results[name] = dict(
            cosine=F.cosine_similarity(cls, whole[0]).mean().item(),
            agreement=100 * (scores.argmax(1) == whole[1].argmax(1))
            .float().mean().item(),
            **probes,
        )
        print(backbone, method, keep_rate, name, results[name], flush=True)
    cost = count_config(config_of_cost(backbone, method, keep_rate))
    return dict(results=results, gmacs=cost.flops / 1e9, **provenance())


def config_of_cost(backbone, method, keep_rate):
    """Return the config of the model as it is trained, for its cost."""
    cell = Cell('leaf40', backbone, method, keep_rate, 224, 'base', seed=1)
    return compose(cell).model


def main():
    """Measure each run that has no result."""
    sets, full = draws(), {}
    rows = {NONE: (NONE, {}), **GRID['methods']}
    for backbone, keep_rate in GRID['runs']:
        for row, (method, options) in rows.items():
            rate = 1.0 if method == NONE else keep_rate
            file = RESULTS / f'{backbone}_kr{100 * rate:g}_{row}.json'
            if method == NONE and (backbone, 'leaf40') not in full:
                measure(backbone, NONE, 1.0, {}, sets, full)
            kept(file, measure, backbone, method, rate, options, sets, full)


if __name__ == '__main__':
    sys.exit(main())
