# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""fit.json: what is known of a model, complete from the first step on."""

import json
import platform
from datetime import datetime, timezone
from hashlib import sha256

import timm
import torch

from mmclca.datasets.photographs import Checked, Photographs
from mmclca.version import __version__

# of each part what is in it; None where it is not known yet
PARTS = dict(
    weights=('name', 'source'),
    model=('method', 'keep_rate', 'layers', 'out_type', 'img_size', 'depth'),
    cost=('gmacs', 'gmacs_full', 'params', 'ms', 'ms_full', 'machine'),
    probe=(
        *('classifier', 'strength', 'temperature', 'folds', 'repeats'),
        *('accuracy', 'low', 'high', 'macro_recall', 'per_class', 'seconds'),
    ),
    threshold=('score', 'threshold'),
)
DONE = ('training', 'held_out', 'final')


def new_facts(call: dict, checked: Checked) -> dict:
    """The facts before anything is fitted.

    Args:
        call (dict): The settings that came, by which the same call is known.
        checked (Checked): The photographs.
    """
    photographs = checked.photographs
    learned = photographs.select(photographs.to_train())
    return dict(
        version=__version__,
        call=call,
        photographs=digest(photographs),
        source=photographs.source,
        classes=list(photographs.classes),
        counts=learned.counts(),
        problems=checked.lines(),
        **{part: dict.fromkeys(names) for part, names in PARTS.items()},
        learning_curve=[],
        **dict.fromkeys(DONE),
        versions=versions(),
        date=datetime.now(timezone.utc).isoformat(timespec='seconds'),
        seconds=0,
    )


def versions() -> dict:
    """Versions of what computes."""
    return dict(
        Python=platform.python_version(),
        PyTorch=torch.__version__,
        timm=timm.__version__,
        mmclca=__version__,
    )


def digest(photographs: Photographs) -> str:
    """What tells a set of photographs and their classes from others."""
    rows = [photographs.paths, photographs.labels, photographs.classes]
    rows += [photographs.groups, photographs.splits]
    return sha256(json.dumps(rows).encode()).hexdigest()[:16]
