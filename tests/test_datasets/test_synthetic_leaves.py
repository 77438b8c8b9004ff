# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import json
import sys
from dataclasses import astuple

import numpy as np
import pytest
from golden import golden
from mmengine.registry import init_default_scope
from mmpretrain.datasets import CustomDataset
from sklearn.neighbors import KNeighborsClassifier
from tiny_run import exit_code

from mmclca.cli.main import get_main
from mmclca.datasets.levels import read_level
from mmclca.datasets.synthetic_leaves import (
    Cultivar,
    cultivars,
    draw_leaf,
    make_cultivars,
)
from mmclca.datasets.synthetic_leaves.cultivars import (
    PLANT_SHARE,
    SPECIMEN_NOISE,
    make_species,
)
from mmclca.datasets.synthetic_leaves.shape import grow_leaf

SIZE, TRAIN, TEST = 96, 16, 6


def specimen(cultivar, label, index, size=SIZE):
    return draw_leaf(cultivar, np.random.default_rng([0, label, index]), size)


@pytest.fixture(scope='module')
def leaves():
    """Images, labels and training mask of eight classes."""
    cultivars = make_cultivars(8)
    places = [(c, i) for c in range(8) for i in range(TRAIN + TEST)]
    images = np.stack([specimen(cultivars[c], c, i) for c, i in places])
    labels, index = np.array(places).T
    return images, labels, index < TRAIN


def orientations(image, cells=6, bins=8):
    """Normalized histogram of gradient orientations in each cell."""
    gy, gx = np.gradient(image.mean(-1))
    strength = np.hypot(gx, gy)
    angle = (np.arctan2(gy, gx) % np.pi / np.pi * bins).astype(int) % bins
    layers = strength * (angle == np.arange(bins)[:, None, None])
    step = len(image) // cells
    hist = layers.reshape(bins, cells, step, cells, step).sum((2, 4))
    return (hist / (np.linalg.norm(hist, axis=0) + 50)).ravel()


def test_classes_differ_in_shape(leaves):
    images, labels, train = leaves
    features = np.stack([orientations(image) for image in images])
    features = (features - features[train].mean(0)) / features[train].std()
    means = [features[train & (labels == c)].mean(0) for c in range(8)]
    gaps = np.linalg.norm(features[~train][:, None] - means, axis=-1)
    assert (gaps.argmin(1) == labels[~train]).mean() > 0.7


def colors_of(image):
    """Joint color histogram with eight bins per channel."""
    index = image.astype(np.int64) * 8 // 256 @ [64, 8, 1]
    return np.bincount(index.ravel(), minlength=512)


def test_classes_do_not_differ_in_color_and_size(leaves):
    images, labels, train = leaves
    features = np.stack([colors_of(image) for image in images])
    nearest = KNeighborsClassifier(1, metric='manhattan')
    nearest.fit(features[train], labels[train])
    assert nearest.score(features[~train], labels[~train]) < 0.3  # chance 1/8
    border = np.concatenate([images[:, 0], images[:, -1], images[:, :, 0]], 1)
    assert np.median(border, axis=(0, 1)).min() > 240  # white paper
    on_leaf = images.mean(-1) < 190
    red, green, blue = images[on_leaf].mean(0)
    assert green > red > blue
    sizes = on_leaf.mean((1, 2))
    colors = [i[m].mean(0) for i, m in zip(images, on_leaf, strict=True)]
    for values in (sizes, *np.transpose(colors)):
        means = [values[labels == c].mean() for c in range(8)]
        assert np.ptp(means) < values.std()


def test_leaves_of_a_seed_equal_stored_ones():
    recorded = dict(curves=[], images=[])
    for label, cultivar in enumerate(make_cultivars(3)):
        curves = astuple(grow_leaf(cultivar, np.random.default_rng(label)))
        recorded['curves'].append([round(x.sum(), 3) for x in curves])
        image = specimen(cultivar, label, 0, 64)
        cells = image.reshape(8, 8, 8, 24).mean((1, 3))
        recorded['images'].append(cells.round().tolist())
    stored = json.loads(golden('leaves.json', json.dumps(recorded)))
    assert np.allclose(recorded['curves'], stored['curves'], atol=0.01)
    # versions of OpenCV draw edges differently
    assert np.allclose(recorded['images'], stored['images'], atol=2)


def test_cultivars_space_every_trait_evenly():
    traits = np.array([astuple(c) for c in make_cultivars(8, seed=3)])
    steps = np.diff(np.sort(traits, axis=0), axis=0)
    assert np.allclose(steps, steps[0]) and (steps > 0).all()
    assert make_cultivars(8, seed=3) == make_cultivars(8, seed=3)
    assert make_cultivars(8, seed=3) != make_cultivars(8, seed=4)


def test_difference_scales_distance_between_cultivars():
    def spread(difference):
        cultivars = make_cultivars(5, difference=difference)
        return np.ptp([astuple(c) for c in cultivars], axis=0)

    assert (spread(0) == 0).all()
    assert np.allclose(spread(1.6), 2 * spread(0.8))
    with pytest.raises(ValueError, match='difference'):
        make_cultivars(2, difference=3)


@pytest.mark.parametrize('difference', [0, 2])
def test_leaf_covers_part_of_the_image_at_every_difference(difference):
    for label, cultivar in enumerate(make_cultivars(6, 1, difference)):
        image = specimen(cultivar, label, 0, 64)
        assert 0.1 < (image.mean(-1) < 190).mean() < 0.4


def test_leaves_of_a_plant_share_half_of_the_variance(monkeypatch):
    monkeypatch.setattr(cultivars, 'grow_leaf', lambda traits, rng: traits)
    monkeypatch.setattr(cultivars, 'paint_leaf', lambda traits, *_: traits)
    leaves = np.array(
        [
            astuple(
                draw_leaf(
                    Cultivar(),
                    np.random.default_rng([plant, leaf]),
                    plant=np.random.default_rng([plant, 2]),
                )
            )
            for plant in range(500)
            for leaf in range(2)
        ]
    )
    spreads = [x.metadata['spread'] for x in cultivars.TRAITS]
    scaled = (leaves - astuple(Cultivar())) / spreads / SPECIMEN_NOISE
    assert abs(scaled.var() - 1) < 0.05
    first, second = scaled[::2], scaled[1::2]
    assert abs((first * second).mean() - PLANT_SHARE) < 0.05


def test_cultivars_of_a_species_are_similar():
    made = make_species(3, 7, seed=2)
    assert [species for species, _ in made] == [0, 0, 0, 1, 1, 2, 2]
    widths = [cultivar.width for _, cultivar in made]
    plants = [plant.width for plant in make_cultivars(3, 2)]
    for (species, _), width in zip(made, widths, strict=True):
        assert abs(width - plants[species]) <= 0.12 / 3 + 1e-9
    assert len(set(widths)) >= 6
    assert [c for _, c in make_species(1, 5, 4)] == make_cultivars(5, 4)
    with pytest.raises(ValueError, match='num_species'):
        make_species(8, 7)


@pytest.fixture
def run(monkeypatch):
    """Function to run the command; returns the exit code."""

    def run(out, *options):
        shape = '--classes', '3', '--per-class', '5', '--size', '40'
        command = [*map(str, ('synthetic_leaves.py', out, *shape, *options))]
        monkeypatch.setattr(sys, 'argv', command)
        return exit_code(get_main('synthetic-leaves'))

    return run


def content(folder):
    return {
        str(file.relative_to(folder)): file.read_bytes()
        for file in folder.rglob('*')
        if file.is_file()
    }


def test_command_writes_equal_bytes_with_any_number_of_jobs(
    run, tmp_path, capfd
):
    assert run(tmp_path / 'one') == 0
    assert len(capfd.readouterr().out.splitlines()) == 2  # no progress bars
    assert run(tmp_path / 'two', '--jobs', '2') == 0
    assert len(capfd.readouterr().out.splitlines()) == 2
    files = content(tmp_path / 'one')
    assert files == content(tmp_path / 'two')
    assert len(files) == 15 + 5
    assert run(tmp_path / 'other', '--seed', '1', '--species', '2') == 0
    other = content(tmp_path / 'other')
    assert {*other} == {*files, 'levels.csv'}
    assert all(other[x] != files[x] for x in files if x.endswith('.jpg'))
    table = read_level(tmp_path / 'other/levels.csv', 'species')
    assert [*table.values()] == ['species_01', 'species_01', 'species_02']


def test_command_keeps_each_plant_in_one_split(run, tmp_path):
    out, options = tmp_path / 'out', ('--per-class', '9', '--per-plant', '3')
    assert run(out, *options) == 0
    names = [file.name for file in sorted(out.rglob('cultivar_02_*.jpg'))]
    assert names[0] == 'cultivar_02_plant_001_0001.jpg'
    assert names[-1] == 'cultivar_02_plant_003_0009.jpg'
    splits = {
        split: {
            line.partition('_plant_')[2][:3]
            for line in (out / f'{split}.txt').read_text().splitlines()
        }
        for split in ('train', 'val', 'test')
    }
    assert splits == dict(train={'001'}, val={'002'}, test={'003'})


def test_mmpretrain_reads_written_dataset(run, tmp_path):
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


def test_command_replaces_its_own_files_only(run, tmp_path):
    out = tmp_path / 'out'
    run(out)
    before = content(out)
    (out / 'notes.txt').write_text('mine')
    assert run(out) == 0
    assert content(out) == before | {'notes.txt': b'mine'}
    assert run(out, '--classes', '2', '--per-class', '4') == 0
    assert len(list(out.rglob('*.jpg'))) == 8
    assert (out / 'notes.txt').read_text() == 'mine'
    (out / 'synthetic_leaves.json').unlink()
    before = content(out)
    assert run(out) == 2
    assert content(out) == before


@pytest.mark.parametrize(
    'options, term',
    [
        (('--per-class', '1'), 'per_class'),
        (('--size', '8'), 'size'),
        (('--val-fraction', '0'), 'val'),
        (('--test-fraction', '0.8'), 'test'),
        (('--classes', '0'), 'num_classes'),
        (('--per-plant', '0'), 'per_plant'),
        (('--per-plant', '2'), 'per_plant'),
        (('--per-plant', '5'), 'per_plant'),
    ],
)
def test_command_writes_nothing_if_an_option_is_refused(
    run, tmp_path, capsys, options, term
):
    assert run(tmp_path / 'out', *options) == 2
    assert term in capsys.readouterr().err
    assert not (tmp_path / 'out').exists()
