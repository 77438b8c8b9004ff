# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import sys
from dataclasses import astuple
from pathlib import Path

import numpy as np
import pytest
from mmengine.registry import init_default_scope
from mmpretrain.datasets import CustomDataset
from sklearn.neighbors import KNeighborsClassifier
from tiny_run import exit_code

from mmclca.cli.verbs import main_of
from mmclca.datasets.photographs.lists import split_sizes
from mmclca.datasets.synthetic_leaves import draw_leaf, make_cultivars

SIZE, TRAIN, TEST = 96, 16, 6
TOOLS = Path(__file__).parents[2] / 'tools' / 'dataset_converters'


def specimen(cultivar, label, index, size=SIZE):
    return draw_leaf(cultivar, np.random.default_rng([0, label, index]), size)


@pytest.fixture(scope='module')
def leaves():
    """Eight classes: images, labels and which of them are training images."""
    cultivars = make_cultivars(8)
    places = [(c, i) for c in range(8) for i in range(TRAIN + TEST)]
    images = np.stack([specimen(cultivars[c], c, i) for c, i in places])
    labels, index = np.array(places).T
    return images, labels, index < TRAIN


def orientations(image, cells=6, bins=8):
    """Histogram of gradient orientations in each cell, each of length 1."""
    gy, gx = np.gradient(image.mean(-1))
    strength = np.hypot(gx, gy)
    angle = (np.arctan2(gy, gx) % np.pi / np.pi * bins).astype(int) % bins
    layers = strength * (angle == np.arange(bins)[:, None, None])
    step = len(image) // cells
    hist = layers.reshape(bins, cells, step, cells, step).sum((2, 4))
    return (hist / (np.linalg.norm(hist, axis=0) + 50)).ravel()


def test_shape_tells_the_classes(leaves):
    images, labels, train = leaves
    features = np.stack([orientations(image) for image in images])
    features = (features - features[train].mean(0)) / features[train].std()
    means = [features[train & (labels == c)].mean(0) for c in range(8)]
    gaps = np.linalg.norm(features[~train][:, None] - means, axis=-1)
    assert (gaps.argmin(1) == labels[~train]).mean() > 0.7


def colours_of(image):
    """Joint histogram of the colours of an image, eight bins a channel."""
    index = image.astype(np.int64) * 8 // 256 @ [64, 8, 1]
    return np.bincount(index.ravel(), minlength=512)


def test_colour_and_size_do_not(leaves):
    images, labels, train = leaves
    features = np.stack([colours_of(image) for image in images])
    nearest = KNeighborsClassifier(1, metric='manhattan')
    nearest.fit(features[train], labels[train])
    assert nearest.score(features[~train], labels[~train]) < 0.3  # chance 1/8
    on_leaf = images.mean(-1) < 190
    sizes = on_leaf.mean((1, 2))
    colours = [i[m].mean(0) for i, m in zip(images, on_leaf, strict=True)]
    for values in (sizes, *np.transpose(colours)):
        means = [values[labels == c].mean() for c in range(8)]
        assert np.ptp(means) < values.std()


def test_white_paper_around_a_green_leaf(leaves):
    images, _, _ = leaves
    border = np.concatenate([images[:, 0], images[:, -1], images[:, :, 0]], 1)
    assert np.median(border, axis=(0, 1)).min() > 240
    red, green, blue = images[images.mean(-1) < 190].mean(0)
    assert green > red > blue


def test_same_generator_same_leaf():
    cultivar = make_cultivars(3)[0]
    one, again, other = (specimen(cultivar, 0, i, 64) for i in (5, 5, 6))
    assert one.shape == (64, 64, 3) and one.dtype == np.uint8
    assert np.array_equal(one, again)
    assert not np.array_equal(one, other)


def test_cultivars_share_out_every_trait():
    traits = np.array([astuple(c) for c in make_cultivars(8, seed=3)])
    steps = np.diff(np.sort(traits, axis=0), axis=0)
    assert np.allclose(steps, steps[0]) and (steps > 0).all()
    assert make_cultivars(8, seed=3) == make_cultivars(8, seed=3)
    assert make_cultivars(8, seed=3) != make_cultivars(8, seed=4)


def test_difference_is_the_distance_between_cultivars():
    def spread(difference):
        cultivars = make_cultivars(5, difference=difference)
        return np.ptp([astuple(c) for c in cultivars], axis=0)

    assert (spread(0) == 0).all()
    assert np.allclose(spread(1.6), 2 * spread(0.8))


@pytest.mark.parametrize('size', [0, 1, 2])
def test_every_corner_of_the_knob_can_be_drawn(size):
    for label, cultivar in enumerate(make_cultivars(6, 1, size)):
        image = specimen(cultivar, label, 0, 64)
        assert 0.1 < (image.mean(-1) < 190).mean() < 0.4


@pytest.mark.parametrize(
    'options, message',
    [
        (dict(num_classes=0), 'num_classes=0'),
        (dict(num_classes=2, difference=3), 'difference=3'),
    ],
)
def test_impossible_cultivars(options, message):
    with pytest.raises(ValueError, match=message):
        make_cultivars(**options)


# -- the tool


@pytest.fixture
def run(monkeypatch):
    def run(out, *options):
        shape = '--classes', '3', '--per-class', '5', '--size', '40'
        command = [*map(str, ('synthetic_leaves.py', out, *shape, *options))]
        monkeypatch.setattr(sys, 'argv', command)
        return exit_code(main_of('synthetic_leaves'))

    return run


def content(folder):
    return {
        str(file.relative_to(folder)): file.read_bytes()
        for file in folder.rglob('*')
        if file.is_file()
    }


def test_same_bytes_with_any_number_of_jobs(run, tmp_path):
    assert run(tmp_path / 'one') == run(tmp_path / 'two', '--jobs', '2') == 0
    files = content(tmp_path / 'one')
    assert files == content(tmp_path / 'two')
    assert len(files) == 15 + 5
    assert run(tmp_path / 'other', '--seed', '1') == 0
    other = content(tmp_path / 'other')
    assert other.keys() == files.keys() and other != files


def test_reads_as_custom_dataset(run, tmp_path):
    init_default_scope('mmpretrain')
    assert run(tmp_path / 'out') == 0
    for split, per_class in (('train', 3), ('val', 1), ('test', 1)):
        data = CustomDataset(
            data_root=str(tmp_path / 'out'),
            ann_file=f'{split}.txt',
            classes=str(tmp_path / 'out' / 'classes.txt'),
            pipeline=[dict(type='LoadImageFromFile')],
            serialize_data=False,
        )
        assert data.CLASSES == ('cultivar_01', 'cultivar_02', 'cultivar_03')
        assert data.get_gt_labels().tolist() == sorted([0, 1, 2] * per_class)
        assert data[0]['img'].shape == (40, 40, 3)


def test_rerun_changes_nothing_and_leaves_other_files_alone(run, tmp_path):
    out = tmp_path / 'out'
    run(out)
    before = content(out)
    (out / 'notes.txt').write_text('mine')
    assert run(out) == 0
    assert content(out) == before | {'notes.txt': b'mine'}
    assert run(out, '--classes', '2', '--per-class', '4') == 0
    assert len(list(out.rglob('*.jpg'))) == 8
    assert (out / 'notes.txt').read_text() == 'mine'


def test_foreign_folder_is_refused(run, tmp_path, capsys):
    (tmp_path / 'holiday.jpg').write_bytes(b'x')
    assert run(tmp_path) == 2
    assert 'is not empty' in capsys.readouterr().err
    assert content(tmp_path) == {'holiday.jpg': b'x'}


@pytest.mark.parametrize(
    'options, message',
    [
        (('--per-class', '1'), 'per_class=1'),
        (('--size', '8'), 'size=8'),
        (('--val-fraction', '0'), 'val above 0'),
        (('--test-fraction', '0.8'), 'their sum below 1'),
        (('--classes', '0'), 'num_classes=0'),
    ],
)
def test_bad_options_write_nothing(run, tmp_path, capsys, options, message):
    assert run(tmp_path / 'out', *options) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / 'out').exists()


# -- what it stands on


@pytest.mark.parametrize(
    'count, fractions, sizes',
    [
        (100, (0.2, 0.2), (60, 20, 20)),
        (6, (0.17, 0.5), (2, 1, 3)),
        (10, (0.2,), (8, 2, 0)),
        (2, (0.01,), (1, 1, 0)),
        (2, (0.9,), (1, 1, 0)),
        (1, (0.5,), (1, 0, 0)),
        (0, (0.5, 0.2), (0, 0, 0)),
        (2, (0.2, 0.2), (1, 1, 0)),
        (3, (0.8, 0.1), (1, 1, 1)),
    ],
)
def test_split_sizes(count, fractions, sizes):
    assert split_sizes(count, *fractions) == sizes
