# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Default networks of ``fit``, and linear probes on them."""

from math import prod

import torch
from frozen import DEPTH, FILES, KEPT, WEIGHTS
from study.networks import Network, find_pretrained

from mmclca.apis import Probe
from mmclca.fitting.candidates import ATC, DIFF_RATE
from mmclca.fitting.model_config import build_config
from mmclca.fitting.plan import CROP_ZOOMS
from mmclca.models import Variant

DEIT, VIT = FILES.values()
REDUCTIONS = {DEIT: ATC, VIT: DIFF_RATE}


def list_defaults(*files):
    """List pairs of weights and variant, for all ViTs or for some weights."""
    layers = (*range(DEPTH),)
    return [
        (file, Variant(**REDUCTIONS[file], img_size=224, layers=layers))
        for file in files or REDUCTIONS
    ]


def get_name(file):
    """Return the name of the network in tables, such as 'vit_tiny'."""
    return Network(file).network


def build_probe(network):
    """Return a linear probe on a network, with cached features."""
    file, variant = network
    config = build_config(find_pretrained(file), variant, 2)
    source = str(WEIGHTS / file)
    return Probe(config, source, 'cpu', KEPT, zooms=CROP_ZOOMS)


def list_layer_columns(head):
    """Return the columns of CLS, average and deviation by layer (12, 3, C)."""
    sizes = head.num_layers, 3, head.in_channels
    return torch.arange(prod(sizes)).view(sizes)
