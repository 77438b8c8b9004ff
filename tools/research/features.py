# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Features of frozen networks over several sets of photographs, kept once.

``MMCLCA_DATA`` and ``MMCLCA_WEIGHTS`` name the folders of data sets and of
weights, ``MMCLCA_FEATURES`` where features are kept.
"""

import os
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import numpy as np
import torch
from probes import read_list

from mmclca.apis.loading import build_classifier
from mmclca.checkpoints.loading import load_trained
from mmclca.datasets.batches import Preparation, batches
from mmclca.models import with_layer_fusion
from mmclca.sweep.compose import NONE, Cell, compose

DATA = Path(os.environ.get('MMCLCA_DATA', 'data'))
WEIGHTS = Path(os.environ.get('MMCLCA_WEIGHTS', 'weights'))
KEPT = Path(os.environ.get('MMCLCA_FEATURES', 'work_dirs/features'))
FILES = {
    'deit-tiny-p16': 'deit_tiny_patch16_224.pth',
    'vit-tiny-p16': 'vit_tiny_patch16_224.safetensors',
}
SPLITS = ('train', 'test')
MOST = 10  # test photographs of a class that are read
DEPTH = 12
CLS, AVERAGE = 0, 1  # what is read of a layer


@dataclass(frozen=True)
class Frozen:
    """A network that is not trained.

    Args:
        backbone (str): One of ``FILES``.
        row (str): What tables call its reducer.
        method (str): The reducer.
        keep_rate (float): Its keep rate.
        options (dict): Its other settings.
    """

    backbone: str
    row: str = NONE
    method: str = NONE
    keep_rate: float = 1.0
    options: dict = field(default_factory=dict, hash=False)

    @property
    def name(self):
        """Name of its files."""
        return f'{self.backbone}_{self.row}_kr{100 * self.keep_rate:g}'

    @property
    def weights(self):
        """File of its weights."""
        return WEIGHTS / FILES[self.backbone]

    def config(self):
        """Return its config."""
        network = self.backbone, self.method, self.keep_rate, 224
        config = compose(Cell('leaf40', *network, 'base', seed=1))
        if self.options:
            config.model.backbone.reducer.update(self.options)
        return config

    def read(self, labels, kept=KEPT):
        """Return what it sees in images.

        Args:
            labels (dict[str, int]): By files.
            kept (Path): Folder of what was read before.

        Returns:
            Tensor: CLS and the average of all tokens left after each layer,
            (N, 12, 2, C).
        """
        name = Path(next(iter(labels))).relative_to(DATA)
        file = kept / name.parts[-4] / f'{self.name}.npy'
        if not file.exists():
            file.parent.mkdir(parents=True, exist_ok=True)
            np.save(file, self._read([*labels]).half().numpy())
        return torch.from_numpy(np.load(file)).float()

    @torch.inference_mode()
    def _read(self, files):
        torch.manual_seed(0)  # of reducers that have to be trained
        config = self.config()
        config.model = with_layer_fusion(
            config.model, range(DEPTH), 'cls_average'
        )
        model = build_classifier(config).eval()
        model.init_weights()
        of_reducer = ('head.', 'backbone.reducer.')
        new = [x for x in model.state_dict() if x.startswith(of_reducer)]
        load_trained(model, str(self.weights), new)
        read = [
            torch.stack(model.backbone(batch.images), dim=1)
            for batch in batches(model, files, prepare=Preparation(config))
        ]
        return torch.cat(read).unflatten(2, (2, -1))


@cache
def data_sets():
    """Return labels by files of training and test images, by data set."""
    leaf40 = DATA / 'leaf40'
    lists = [read_list(leaf40 / f'{split}.txt') for split in SPLITS]
    of_leaf40 = [
        {str(leaf40 / path): label for path, label in lines.items()}
        for lines in lists
    ]
    found = dict(leaf40=of_leaf40)
    for folder in sorted(DATA.glob('sets/*/')):
        classes = sorted(folder.glob('train/*'))
        train = labels_of(classes)
        test = labels_of([folder / 'test' / x.name for x in classes], MOST)
        found[folder.name] = [train, test]
    return found


def labels_of(folders, most=None):
    """Return labels by files, the most of a folder at equal distances."""
    found = {}
    for label, folder in enumerate(folders):
        files = sorted(map(str, folder.glob('*')))
        step = max(1, len(files) // most) if most else 1
        found.update(dict.fromkeys(files[::step][:most], label))
    return found
