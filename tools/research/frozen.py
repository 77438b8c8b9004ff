# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Features from frozen networks on several datasets, computed once.

``MMCLCA_DATA``, ``MMCLCA_WEIGHTS`` and ``MMCLCA_FEATURES`` name the folders
for datasets, weights and cached features.
"""

import os
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pandas as pd
import torch
import torch.nn.functional as F
from mmengine import list_from_file

from mmclca.apis.loading import build_classifier
from mmclca.checkpoints.load import load
from mmclca.datasets.batches import Preparation, batches
from mmclca.datasets.photos import read_photos
from mmclca.models import with_layer_fusion
from mmclca.models.reduction.tokens import Tokens
from mmclca.models.reduction.trace import Kept, sum_into
from mmclca.sweep.runs import NONE, Run, RunKey
from mmclca.utils.files import replace_file

DATA = Path(os.environ.get('MMCLCA_DATA', 'data'))
WEIGHTS = Path(os.environ.get('MMCLCA_WEIGHTS', 'weights'))
KEPT = Path(os.environ.get('MMCLCA_FEATURES', 'work_dirs/features'))
FILES = {
    'deit-tiny-p16': 'deit_tiny_patch16_224.pth',
    'vit-tiny-p16': 'vit_tiny_patch16_224.safetensors',
}
# datasets on which the defaults of fit were chosen
DATASETS = (
    'coffee5',
    'cotton5',
    'flower17',
    'grape5',
    'leaf40',
    'leaf40_white',
    'leafsnap27',
    'mangodis8',
    'mushroom10',
    'seedlings12',
    'strawberry5',
)
DEPTH = 12
# features of a layer
FEATURES = ('cls', 'average', 'weighted', 'last', 'std')


@dataclass(frozen=True)
class Frozen:
    """A frozen backbone, its token reduction and its preprocessing.

    Args:
        backbone (str): Name of a model config and key in ``FILES``.
        method (str): Reducer. Defaults to ``NONE``, the full ViT.
        keep_rate (float): Keep rate. Defaults to 1.0.
        row (str): Name for steps or views in file names and tables.
        img_size (int): Image size. Defaults to 224.
        steps (list[dict]): Preprocessing instead of the steps of the config.
        extra_views (list[dict]): ``row`` and ``steps`` per further view of the
            training photos.
    """

    backbone: str
    method: str = NONE
    keep_rate: float = 1.0
    row: str = ''
    img_size: int = 224
    steps: list = field(default_factory=list, hash=False)
    extra_views: list = field(default_factory=list, hash=False)

    @property
    def name(self):
        """Stem of its feature files."""
        size = f'kr{100 * self.keep_rate:g}', f'{self.img_size}px'
        if self.steps or self.extra_views:
            return '_'.join((self.backbone, self.method, *size, self.row))
        return '_'.join((self.backbone, self.row or self.method, *size))

    @property
    def weights(self):
        """Path to its weights."""
        return WEIGHTS / FILES[self.backbone]

    def config(self, layers=range(DEPTH), out_type='cls_std'):
        """Return its config, reading some layers."""
        key = RunKey(
            dataset='leaf40',
            backbone=self.backbone,
            method=self.method,
            keep_rate=self.keep_rate,
            size=self.img_size,
            clca='base',
            seed=1,
        )
        config = Run.from_key(key).compose()
        config.model = with_layer_fusion(config.model, layers, out_type)
        if self.steps:
            config.test_dataloader.dataset.pipeline[1:-1] = self.steps
        return config

    def features(self, name, splits=('train', 'test')):
        """Return ``FEATURES`` after each layer for a dataset, (N, 12, 5, C),
        zero for other splits."""
        file, dataset = KEPT / name / f'{self.name}.npy', photos()[name]
        if not file.exists():
            chosen = dataset.split.isin(splits).to_numpy()
            seen = self._features([*dataset.path[chosen]]).half().numpy()
            features = np.zeros((len(dataset), *seen.shape[1:]), seen.dtype)
            features[chosen] = seen
            replace_file(file, lambda part: np.save(part, features))
        return torch.from_numpy(np.load(file)).float()

    def views(self, name):
        """Return features for a dataset and for further views of its training
        photos, (V, N, 12, 5, C)."""
        if not self.extra_views:
            return self.features(name)[None]
        plain = replace(self, extra_views=[], row='')
        variants = [replace(plain, **view) for view in self.extra_views]
        features = [x.features(name, ['train']) for x in variants]
        return torch.stack([plain.features(name), *features])

    @torch.inference_mode()
    def _features(self, files):
        torch.manual_seed(0)  # learned reducers are randomly initialized
        config = self.config()
        model = build_classifier(config).eval()
        model.init_weights()
        may_be_new = ('head.', 'backbone.reducer.')
        new = [x for x in model.state_dict() if x.startswith(may_be_new)]
        load(model, self.weights, may_be_new=new)
        patches = PatchCounter()
        model.backbone.format_tokens = patches.read
        with patch.object(Tokens, 'reduce', patches.reduce(Tokens.reduce)):
            read = [
                torch.stack(model.backbone(batch.images), dim=1)
                for batch in batches(model, files, prepare=Preparation(config))
            ]
        return torch.cat(read)


class PatchCounter:
    """Count the patches merged into each token, and sum dropped tokens.

    It reads features that weight each token by its number of patches.
    """

    def read(self, tokens, hw):
        """Return the ``FEATURES`` of a layer, (B, 5, C)."""
        if not tokens.trace:
            self._begin(tokens)
        left = (self.counts * tokens.features).sum(1, keepdim=True)
        start = tokens.num_prefix
        parts = (
            tokens.features[:, :1],
            tokens.average(start),
            left / self.counts.sum(1, keepdim=True),
            (left + self.dropped) / tokens.num_patches,
            tokens.deviation(start),
        )
        return torch.cat(parts, dim=1)

    def _begin(self, tokens):
        self.counts = tokens.features.new_ones(*tokens.features.shape[:2], 1)
        self.counts[:, : tokens.num_prefix] = 0
        self.dropped = 0

    def reduce(self, original):
        """Wrap ``Tokens.reduce`` to update the counts."""

        def counted(tokens, record):
            reduced = original(tokens, record)
            before = (self.counts * tokens.features).sum(1, keepdim=True)
            if isinstance(record, Kept):
                # patches fused into a new token count as dropped
                index = record.index.unsqueeze(-1)
                variants = reduced.features.size(1) - record.index.size(1)
                kept = self.counts.gather(1, index)
                self.counts = F.pad(kept, (0, 0, 0, variants))
            else:
                kept = self.counts * (record.share > 0).unsqueeze(-1)
                number = record.num_tokens
                self.counts = sum_into(record.target, kept, number)
            after = (self.counts * reduced.features).sum(1, keepdim=True)
            self.dropped = self.dropped + before - after
            return reduced

        return counted


@cache
def photos(names=DATASETS):
    """Return tables with path, label and split per photo, by dataset."""
    return {name: read_dataset(name) for name in names}


def read_dataset(name):
    """Return a table with path, label and split per photo of a dataset."""
    if (DATA / name / 'train.txt').exists():
        rows = [
            (str(DATA / name / path), label, split)
            for split in ('train', 'test')
            for path, label in read_list(DATA / name / f'{split}.txt').items()
        ]
    else:
        photos = read_photos(DATA / 'sets' / name)
        rows = zip(photos.paths, photos.labels, photos.splits, strict=True)
    return pd.DataFrame(rows, columns=['path', 'label', 'split'])


def read_list(file):
    """Read labels by path from lines ``path label``."""
    pairs = (line.rpartition(' ') for line in list_from_file(file))
    return {path: int(label) for path, _, label in pairs}
