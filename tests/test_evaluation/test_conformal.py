# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Prediction sets: coverage, groups, numbers needed, damaged files."""

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from mmclca.checkpoints.model_folder import ModelFolder
from mmclca.errors import Error
from mmclca.evaluation.calibration_file import (
    HeldOut,
    read_calibration,
    write_calibration,
)
from mmclca.evaluation.conformal import Calibration, count_needed, predict_sets


def draw(number, seed, classes=4):
    """Return probabilities whose labels follow them, and the labels."""
    generator = torch.Generator().manual_seed(seed)
    logits = 2 * torch.randn(number, classes, generator=generator)
    probabilities = logits.softmax(1)
    labels = torch.multinomial(probabilities, 1, generator=generator)
    return probabilities, labels[:, 0]


def calibrate(number=39, seed=0):
    return Calibration(*draw(number, seed), torch.arange(number))


def test_count_needed_is_the_smallest_with_a_finite_threshold():
    assert [count_needed(x) for x in (50, 80, 90, 95, 99)] == [1, 4, 9, 19, 99]
    calibrate(19).find_threshold(95)
    with pytest.raises(Error, match='at least 19 photos are needed, found 18'):
        calibrate(18).find_threshold(95)


@pytest.mark.parametrize('level', [80, 95])
def test_sets_cover_the_level_on_average(level):
    covered = []
    for seed in range(300):
        threshold = calibrate(seed=seed).find_threshold(level)
        probabilities, labels = draw(200, 1000 + seed)
        sets = predict_sets(probabilities, threshold)
        covered.append(sets.gather(1, labels[:, None]).double().mean())
    mean = 100 * float(torch.stack(covered).mean())
    # the standard error is 0.4 points or less
    assert abs(mean - level) < 1.6


def test_sets_always_have_the_most_probable_class():
    probabilities = torch.tensor([[0.4, 0.35, 0.25]])
    assert predict_sets(probabilities, 1.0).tolist() == [[True, False, False]]
    assert predict_sets(probabilities, 0.8).tolist() == [[True, True, False]]


def test_groups_have_equal_weights():
    probabilities, labels = draw(20, 0)
    # one further group with many photos, all misclassified
    wrong = torch.tensor([[1.0, 0, 0, 0]]).expand(80, 4)
    calibration = Calibration(
        torch.cat([probabilities, wrong]),
        torch.cat([labels, torch.ones(80, dtype=torch.int64)]),
        torch.cat([torch.arange(20), torch.full((80,), 20)]),
        'group',
    )
    assert calibration.independent == 21
    assert calibration.find_threshold(90) > 0
    single = Calibration(
        calibration.probabilities, calibration.labels, torch.arange(100)
    )
    assert single.find_threshold(90) == 0
    few = Calibration(probabilities, labels, torch.arange(20) // 2, 'group')
    with pytest.raises(Error, match='at least 19 groups are needed, found 10'):
        few.find_threshold(95)


def test_untested_photos_count_as_not_covered():
    calibration = calibrate(40)
    calibration.probabilities[:2] = torch.nan
    assert calibration.find_threshold(90) > 0
    with pytest.raises(Error, match='2 of 40 photos are in classes with one'):
        calibration.find_threshold(95)


def test_restricted_classes_are_as_if_others_did_not_exist():
    calibration = calibrate(100)
    restricted = calibration.among([1, 3])
    is_kept = (calibration.labels == 1) | (calibration.labels == 3)
    assert len(restricted.labels) == int(is_kept.sum())
    expected = calibration.probabilities[is_kept][:, [1, 3]]
    assert torch.equal(restricted.probabilities, expected)
    assert {*restricted.labels.tolist()} == {0, 1}
    # a ratio to the largest of fewer classes is never lower
    same_photos = calibration.select(is_kept)
    assert restricted.find_threshold(80) > same_photos.find_threshold(80)


def test_sizes_count_classes_and_coarse_classes():
    probabilities = torch.tensor(
        [[0.9, 0.1, 0.0], [0.5, 0.5, 0.0], [0.0, 0.5, 0.5], [torch.nan] * 3]
    )
    labels = torch.tensor([0, 1, 2, 0])
    calibration = Calibration(probabilities, labels, torch.arange(4))
    sizes = calibration.measure_sizes(0.5, [0, 0, 1])
    assert np.allclose(
        [sizes.one_class, sizes.two_classes, sizes.coarse_class, sizes.mean],
        [1 / 3, 2 / 3, 1 / 3, 5 / 3],
    )
    assert calibration.measure_sizes(0.5).coarse_class == 0


@pytest.fixture
def folder(tmp_path):
    (tmp_path / 'fit.json').write_text('{"final": "probe"}')
    folder = ModelFolder(tmp_path)
    write_calibration(folder.cv_probabilities, calibrate())
    return folder


def test_stored_calibration_is_read_again(folder):
    read, written = read_calibration(folder, 4), calibrate()
    assert read.unit == 'photo'
    for name in ('probabilities', 'labels', 'groups'):
        assert torch.equal(vars(read)[name], vars(written)[name])


def test_held_out_photos_replace_the_folds_if_fine_tuned(folder):
    (folder.path / 'fit.json').write_text('{"final": "trained"}')
    with pytest.raises(Error, match='added after fine-tuning'):
        read_calibration(folder, 4)
    positions = torch.tensor([1, 5])
    held_out = HeldOut(positions, torch.full((2, 4), 0.25))
    path = folder.cv_probabilities
    write_calibration(path, calibrate(), held_out)
    read = read_calibration(folder, 4)
    assert torch.equal(read.labels, calibrate().labels[positions])
    assert torch.equal(read.probabilities, held_out.probabilities)
    assert read.groups.tolist() == [1, 5]


@pytest.mark.parametrize(
    'change',
    [
        dict(labels=torch.arange(39)),
        dict(labels=torch.zeros(39)),
        dict(groups=torch.full((39,), 39)),
        dict(probabilities=torch.zeros(39, 4)),
        dict(probabilities=torch.full((39, 4), 2.0)),
        dict(probabilities=torch.ones(39, 3)),
        dict(held_out=torch.tensor([50])),
        dict(held_out=torch.tensor([1])),
    ],
    ids=lambda change: str([*change]),
)
def test_read_calibration_refuses_wrong_values(folder, change):
    path = folder.cv_probabilities
    tensors = load_file(path) | change
    save_file(tensors, path, dict(unit='photo'))
    with pytest.raises(Error, match='cv_probabilities.* is damaged'):
        read_calibration(folder, 4)


def test_read_calibration_refuses_earlier_or_missing_files(folder):
    path = folder.cv_probabilities
    tensors = load_file(path)
    save_file(tensors, path, dict(unit='year'))
    with pytest.raises(Error, match='is damaged'):
        read_calibration(folder, 4)
    del tensors['groups']
    save_file(tensors, path)
    with pytest.raises(Error, match='earlier version'):
        read_calibration(folder, 4)
    path.write_bytes(b'nothing')
    with pytest.raises(Error, match='is damaged'):
        read_calibration(folder, 4)
    path.unlink()
    with pytest.raises(Error, match='is missing'):
        read_calibration(folder, 4)
