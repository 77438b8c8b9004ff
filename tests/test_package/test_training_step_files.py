# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Number of files entered by a training step."""

import sys
from pathlib import Path

from mmpretrain.structures import DataSample
from small_models import CACHE, build, classifier, images, vit

import mmclca

PACKAGE = Path(mmclca.__file__).parent


def test_clca_training_step_enters_few_files():
    reducer = dict(type='mmclca.EViT', keep_rate=0.5)
    options = dict(reduce_at=(1, 2), reducer=reducer, cache=CACHE)
    model = build(classifier(vit(num_layers=4, **options), cla=True)).train()
    samples, found = [DataSample().set_gt_label(0) for _ in images()], set()
    sys.setprofile(lambda frame, *_: found.add(frame.f_code.co_filename))
    try:
        model.loss(images(), samples)
    finally:
        sys.setprofile(None)
    entered = [name for name in found if PACKAGE in Path(name).parents]
    assert 0 < len(entered) <= 13, entered
