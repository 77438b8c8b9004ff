# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Paired differences over draws.

With what arms are compared is on a page: test_pages.py.
"""

import numpy as np
import pandas as pd
import pytest
from compare import OUR_PROBE, difference, to_runs


def test_difference_is_paired():
    one = pd.Series([90.0, 92.0, 97.0], index=[0, 1, 2])
    other = pd.Series([89.0, 90.0, 94.0, 10.0], index=[0, 1, 2, 3])
    found = difference(one, other)
    assert found.mean == pytest.approx(2) and found.draws == 3
    # t of two degrees of freedom at 0.975, and the standard error of 1, 2, 3
    half = 4.302653 / 3**0.5
    assert found.high - 2 == pytest.approx(half, rel=1e-6)
    assert 2 - found.low == pytest.approx(half, rel=1e-6)


def test_one_draw_has_no_interval():
    found = difference(pd.Series([90.0]), pd.Series([89.0]))
    assert found.mean == 1 and np.isnan([found.low, found.high]).all()


def test_runs_of_both_kinds():
    frozen = dict(backbone='b', method='EViT', keep_rate=0.5, img_size=160)
    probe = dict(
        dataset='leaf40_white',
        arm=dict(line=OUR_PROBE, frozen=frozen, layers=[0, 1]),
        network='n',
        train_images=120,
        accuracy=[90.0, 91.0],
        macro_recall=[80.0, 81.0],
        fit_seconds=[0.5, 0.7],
        gmacs=0.3,
    )
    cell = dict(dataset='leaf40', backbone='lf-evit_b', method='EViT')
    cell |= dict(keep_rate=1.0, size=128, clca='base', variant='small-d3')
    metrics = {'single-label/recall': 70.0}
    result = dict(cell=cell, accuracy=92.0, gmacs=0.4, metrics=metrics)
    result['cpu_seconds'] = 50.0
    runs = to_runs([probe], [result], dict(n=5.0))
    assert runs.draw.tolist() == [0, 1, 3] and set(runs.backbone) == {'b'}
    assert set(runs.dataset) == {'leaf40_white'}
    assert runs.img_size.tolist() == [160, 160, 128]
    assert runs.method.tolist() == ['EViT', 'EViT', '']
    assert runs.line[2] == 'our probe, trained on, smaller image'
    # 120 images of 5 ms, and fitting
    assert runs.seconds.tolist() == pytest.approx([1.1, 1.3, 50.0])
    assert runs.ms.isna().tolist() == [False, False, True]
