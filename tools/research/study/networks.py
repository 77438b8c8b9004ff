# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Frozen networks to compare: weights, token reduction and image size."""

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import torch
from frozen import DEPTH, WEIGHTS
from mmengine.config import Config

from mmclca.apis.loading import build_classifier
from mmclca.checkpoints.load import load
from mmclca.fitting.model_config import build_config
from mmclca.fitting.weights import find_weights
from mmclca.models import Variant, list_methods

GRID = Config.fromfile('configs/sweeps/few_tokens.py').to_dict()
MAY_BE_NEW = 'head.', 'backbone.reducer.'


@dataclass(frozen=True)
class Network:
    """A frozen network.

    Args:
        file (str): Weights in ``MMCLCA_WEIGHTS``.
        method (str): Reducer, '' for the full network. Defaults to ''.
        keep_rate (float): Keep rate. Defaults to 1.0.
        img_size (int): Image size in pixels. Defaults to 224.
    """

    file: str
    method: str = ''
    keep_rate: float = 1.0
    img_size: int = 224

    @property
    def network(self):
        """Weights, such as 'vit_tiny'."""
        return re.split(r'_patch|_reparam', Path(self.file).stem)[0]

    @property
    def name(self):
        """Folder for its features."""
        method = self.method or 'full'
        rate = f'kr{100 * self.keep_rate:g}'
        return f'{self.network}_{method}_{rate}_{self.img_size}px'

    @property
    def is_vit(self):
        """Whether it is a ViT, with a reducer or without."""
        return self.file in GRID['vits']

    @property
    def is_candidate(self):
        """Whether ``fit`` may use it: its classifier is measured, too."""
        if not self.method:
            return True
        is_half = self.keep_rate == GRID['rates'][0]
        return is_half and self.method in GRID['smaller']

    def get_config(self, depth=DEPTH):
        """Return the config with its first layers, which the head reads."""
        layers = tuple(range(depth)) if self.is_vit else None
        variant = Variant(
            self.method or None,
            self.keep_rate,
            self.img_size,
            layers=layers,
            out_type='cls_average_std' if self.is_vit else None,
        )
        return build_config(find_pretrained(self.file), variant, 2)

    def build(self):
        """Build the network; its new parameters depend on no other one."""
        torch.manual_seed(0)
        model = build_classifier(self.get_config()).eval()
        model.init_weights()
        new = [x for x in model.state_dict() if x.startswith(MAY_BE_NEW)]
        load(model, str(WEIGHTS / self.file), may_be_new=new)
        return model.requires_grad_(False)


@cache
def find_pretrained(file):
    """Find weights, once."""
    return find_weights(str(WEIGHTS / file))


def list_networks(methods=()):
    """List all networks, in the order in which they are computed.

    ``methods`` selects reducers, and the full networks they are compared with.
    """
    vits = GRID['vits']
    full = [Network(file) for file in vits]
    reduced = [
        [Network(x, y, rate) for x in vits for y in methods or list_methods()]
        for rate in GRID['rates']
    ]
    if methods:
        return full + sum(reduced, [])
    smaller = [Network(x, img_size=y) for x in vits for y in GRID['img_sizes']]
    cnns = [
        Network(file, img_size=size)
        for file, sizes in GRID['cnns'].items()
        for size in sorted(sizes, reverse=True)  # others need the largest
    ]
    both = [
        Network(file, method, GRID['rates'][0], size)
        for method in GRID['smaller']
        for size in GRID['smaller_sizes']
        for file in vits
    ]
    first, second, *others = reduced
    return full + first + smaller + cnns + second + both + sum(others, [])
