# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Number of files entered by common jobs."""

import sys
from pathlib import Path

import pytest
import torch
from mmpretrain.structures import DataSample
from small_models import CACHE, build, classifier, images, vit
from tiny_photographs import write_photographs, write_weights

import mmclca
from mmclca.fitting import FittedModel

PACKAGE = Path(mmclca.__file__).parent


@pytest.fixture
def files_of():
    """Return the files whose functions a job calls."""

    def files_of(job):
        found = set()

        def note(frame, event, _):
            code = frame.f_code
            if event == 'call' and code.co_name != '<module>':
                found.add(Path(code.co_filename))

        sys.setprofile(note)
        try:
            job()
        finally:
            sys.setprofile(None)
        return sorted(path for path in found if PACKAGE in path.parents)

    return files_of


@pytest.mark.slow
def test_fit_and_predict_enter_few_files(tmp_path, files_of):
    torch.manual_seed(0)
    photographs, weights = write_photographs(tmp_path), write_weights(tmp_path)

    def fit(name):
        options = dict(weights=weights, runtime='pytorch', probe_only=True)
        return mmclca.fit(photographs, tmp_path / name, **options)

    model = fit('model').folder
    entered = files_of(lambda: fit('another'))
    assert len(entered) <= 76, entered
    image = photographs / 'ash/0.png'
    entered = files_of(lambda: FittedModel(model).predict(image))
    assert len(entered) <= 37, entered


def test_clca_training_step_enters_few_files(files_of):
    reducer = dict(type='mmclca.EViT', keep_rate=0.5)
    options = dict(reduce_at=(1, 2), reducer=reducer, cache=CACHE)
    model = build(classifier(vit(num_layers=4, **options), cla=True)).train()
    samples = [DataSample().set_gt_label(0) for _ in images()]
    entered = files_of(lambda: model.loss(images(), samples))
    assert len(entered) <= 13, entered
