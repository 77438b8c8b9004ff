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
from mmengine.config import ConfigDict
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
DEPTH = 12
CLS, AVERAGE, STD = range(3)  # what is read of a layer


def resized(**settings):
    """Resize as the test of the configs does."""
    return dict(
        type='Resize', backend='pillow', interpolation='bicubic', **settings
    )


# by the name of a view of a photograph: steps that make it of a side
VIEWS = dict(
    middle=lambda side: [
        resized(scale=(int(side / 0.875),) * 2),
        dict(type='CenterCrop', crop_size=side),
    ],
    whole=lambda side: [resized(scale=(side, side))],
    padded=lambda side: [
        resized(scale=(side, side), keep_ratio=True),
        dict(type='Pad', size=(side, side), pad_val=dict(img=255)),
    ],
    cropped=lambda side: [
        dict(type='ResizeEdge', scale=side, interpolation='bicubic'),
        dict(type='CenterCrop', crop_size=side),
    ],
    mirrored=lambda side: [
        *VIEWS['middle'](side),
        dict(type='RandomFlip', prob=1.0, direction='horizontal'),
    ],
)


@dataclass(frozen=True)
class Frozen:
    """A network that is not trained.

    Args:
        backbone (str): One of ``FILES``.
        row (str): What tables call its reducer.
        method (str): The reducer.
        keep_rate (float): Its keep rate.
        options (dict): Its other settings.
        img_size (int): Side of its images.
        view (str): One of ``VIEWS``.
    """

    backbone: str
    row: str = NONE
    method: str = NONE
    keep_rate: float = 1.0
    options: dict = field(default_factory=dict, hash=False)
    img_size: int = 224
    view: str = 'middle'

    @property
    def name(self):
        """Name of its files."""
        rate = f'kr{100 * self.keep_rate:g}'
        return '_'.join(
            (self.backbone, self.row, rate, f'{self.img_size}px', self.view)
        )

    @property
    def weights(self):
        """File of its weights."""
        return WEIGHTS / FILES[self.backbone]

    def config(self, layers=range(DEPTH), out_type='cls_std'):
        """Return its config, reading some layers."""
        network = self.backbone, self.method, self.keep_rate, self.img_size
        config = compose(Cell('leaf40', *network, 'base', seed=1))
        if self.options:
            config.model.backbone.reducer.update(self.options)
        config.model = with_layer_fusion(config.model, layers, out_type)
        pipeline = config.test_dataloader.dataset.pipeline
        steps = map(ConfigDict, VIEWS[self.view](self.img_size))
        pipeline[1:-1] = steps  # between loading and packing
        return config

    def read(self, labels):
        """Return what it sees in the images of a data set.

        Args:
            labels (dict[str, int]): By files.

        Returns:
            Tensor: CLS, and average and standard deviation of the tokens
            left, after each layer, (N, 12, 3, C).
        """
        name = Path(next(iter(labels))).relative_to(DATA).parts[-4]
        file = KEPT / name / f'{self.name}.npy'
        if not file.exists():
            file.parent.mkdir(parents=True, exist_ok=True)
            np.save(file, self._read([*labels]).half().numpy())
        return torch.from_numpy(np.load(file)).float()

    @torch.inference_mode()
    def _read(self, files):
        torch.manual_seed(0)  # of reducers that have to be trained
        config = self.config()
        model = build_classifier(config).eval()
        model.init_weights()
        may_be_new = ('head.', 'backbone.reducer.')
        new = [x for x in model.state_dict() if x.startswith(may_be_new)]
        load_trained(model, str(self.weights), new)
        model.backbone.format_tokens = read_tokens
        read = [
            torch.stack(model.backbone(batch.images), dim=1)
            for batch in batches(model, files, prepare=Preparation(config))
        ]
        return torch.cat(read)


def read_tokens(tokens, hw):
    """Return CLS, average and standard deviation, (B, 3, C)."""
    start = tokens.num_prefix
    both = tokens.average(start), tokens.deviation(start)
    return torch.cat((tokens.x[:, :1], *both), dim=1)


@cache
def data_sets(most=None):
    """Return labels by files of training and test images, by data set.

    Args:
        most (int, optional): Test images of a class. Defaults to None, all.
    """
    found = {}
    for name in ('leaf40', 'leaf40_white'):
        lists = [read_list(DATA / name / f'{split}.txt') for split in SPLITS]
        found[name] = [
            {str(DATA / name / path): label for path, label in lines.items()}
            for lines in lists
        ]
    for folder in sorted(DATA.glob('sets/*/')):
        classes = sorted(folder.glob('train/*'))
        test = [folder / 'test' / one.name for one in classes]
        found[folder.name] = [labels_of(classes), labels_of(test, most)]
    return found


def labels_of(folders, most=None):
    """Return labels by files, the most of a folder at equal distances."""
    found = {}
    for label, folder in enumerate(folders):
        files = sorted(map(str, folder.glob('*')))
        step = max(1, len(files) // most) if most else 1
        found.update(dict.fromkeys(files[::step][:most], label))
    return found
