# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Changes of the features by image size, layer and remaining patches.

Tokens of a frozen ViT-Tiny are reduced once, with DiffRate.
"""

from functools import cache

import fresh_datasets
import torch
from frozen import DATASETS, DEPTH, FILES, WEIGHTS, photos
from schedule_choice import FIRST_LAYER, PATCH
from study.networks import find_pretrained
from tables import kept

from mmclca.apis.loading import load_classifier
from mmclca.datasets.batches import Preparation, batches
from mmclca.fitting.candidates import NO_REDUCTION
from mmclca.fitting.model_config import build_config
from mmclca.models import Variant

STUDY = 'schedule_losses'
NAMES = (*DATASETS, *fresh_datasets.NAMES)
FILE = FILES['vit-tiny-p16']
PER_DATASET = 4  # photos
# remaining patches by image size
COUNTS = {
    224: (160, 128, 96, 72, 48, 32, 16),
    208: (128, 80, 48, 24),
    192: (112, 80, 56, 40, 24, 16),
    176: (96, 64, 48, 32, 16),
    160: (80, 64, 48, 32, 16),
    144: (64, 48, 32, 16),
    128: (48, 32, 16),
}


def read_losses():
    """Return the table of changed shares; measure missing image sizes."""
    wanted = [(dict(img_size=size), (size,)) for size in COUNTS]
    return kept(STUDY, measure, wanted)


@torch.inference_mode()
def measure(img_size):
    """Yield a row per layer and count, and one for smaller images."""
    run = run_photos(img_size)
    full, patches = run.features(run.outputs), (img_size // PATCH) ** 2
    if img_size != max(COUNTS):
        yield dict(layer=0, patches=patches, **compare(read_full(), full))
    for layer in range(FIRST_LAYER, DEPTH):
        for left in COUNTS[img_size]:
            shares = compare(full, run.reduce({layer: left}))
            yield dict(layer=layer, patches=left, **shares)


@cache
def read_full():
    """Return the features of the largest images."""
    run = run_photos(max(COUNTS))
    return run.features(run.outputs)


@torch.inference_mode()
def measure_schedule(schedule):
    """Return the changed share of a whole schedule, mean over datasets."""
    reduced = run_photos(schedule.img_size).reduce(schedule.steps)
    shares = compare(read_full(), reduced)
    return sum(shares.values()) / len(shares)


def run_photos(img_size):
    """Run the ViT on some photos of each dataset."""
    layers = (*range(DEPTH),)
    variant = Variant(**NO_REDUCTION, img_size=img_size, layers=layers)
    config = build_config(find_pretrained(FILE), variant, 2)
    backbone = config.model.backbone
    backbone.reducer = dict(type='mmclca.DiffRate')
    backbone.reduce_at = layers[1:]
    source = str(WEIGHTS / FILE)
    model = load_classifier(config, source, device='cpu', new_last_layer=True)
    prepared = Preparation(model._config)
    read = batches(model, list_photos(), prepare=prepared)
    return Run(model, torch.cat([x.images for x in read]))


def list_photos():
    """Return training photos in the order of ``NAMES``."""
    files = []
    for dataset in photos(NAMES).values():
        train = dataset[dataset.split == 'train']
        files += train.sample(PER_DATASET, random_state=0).path.tolist()
    return files


class Run:
    """A forward pass, repeated from a layer with a reduction.

    Args:
        model (BaseModel): Classifier with a reducer in all layers but the
            first.
        images (Tensor): Images (B, 3, H, W).
    """

    def __init__(self, model, images):
        self.model, self.backbone = model, model.backbone
        tokens, self.grid = self.backbone.embed(images)
        self.inputs, self.outputs = [], []
        for layer in self.backbone.layers:
            self.inputs.append(tokens)
            tokens = self.backbone.run_layer(layer, tokens, None)
            self.outputs.append(self.backbone.format_tokens(tokens, self.grid))

    def features(self, outputs):
        """Return features by layer and part (B, 36, C)."""
        flat = self.model.head.pre_logits(tuple(outputs))
        return flat.unflatten(1, (-1, self.backbone.embed_dims))

    def reduce(self, steps):
        """Return the features with the remaining patches of some layers."""
        reducer, first = self.backbone.reducer, min(steps)
        counts, left = [], reducer.num_patches
        for layer in range(1, DEPTH):
            left = steps.get(layer, left)
            counts.append(left)
        reducer.num_tokens = counts
        outputs, tokens = self.outputs[:first], self.inputs[first]
        for i in range(first, DEPTH):
            layer = self.backbone.layers[i]
            stage = self.backbone.stage_of[i] if i in steps else None
            tokens = self.backbone.run_layer(layer, tokens, stage)
            outputs.append(self.backbone.format_tokens(tokens, self.grid))
        return self.features(outputs)


def compare(full, features):
    """Return the changed share of the variance by dataset, from 0 to 1.

    Both are (B, 36, C). A shift common to a dataset does not count, as the
    classifier is trained on the same features.
    """
    variances = []
    for x in (features - full, full):
        centered = x.unflatten(0, (-1, PER_DATASET))
        centered = centered - centered.mean(1, keepdim=True)
        variances.append(centered.square().sum((1, 3)))
    shares = (variances[0] / sum(variances)).mean(1)
    return dict(zip(NAMES, shares.tolist(), strict=True))
