# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Several photos per plant: figures in fit, and predictions."""

import csv

import pytest
from tiny_photos import write_photos, write_weights

from mmclca.fitting.fit_folder import FitFolder

pytestmark = pytest.mark.slow
PHOTOS_PER_PLANT = 3


@pytest.fixture(scope='module')
def plants(tmp_path_factory, fit):
    """Folder with photos of twelve plants, and the printed fit."""
    folder = tmp_path_factory.mktemp('plants')
    photos = write_photos(folder, per_class=9)
    for path in sorted(photos.rglob('*.png')):
        number = int(path.stem) // PHOTOS_PER_PLANT
        path.rename(path.with_name(f'plant{number}_{path.name}'))
    write_weights(folder)
    fit(folder, groups=r'[a-z]+/plant\d')
    return folder


def test_fit_states_the_accuracy_with_several_photos_per_plant(plants):
    record = FitFolder(plants / 'model').read()
    figures = record.plants
    assert len(figures.accuracies) == PHOTOS_PER_PLANT
    assert figures.plants == 12 and 0 <= figures.dependence <= 1
    shares = ' / '.join(f'{100 * x:.0f}' for x in figures.accuracies)
    line = f'with 1 / 2 / 3 photos per plant: {shares}%'
    assert line in (plants / 'model/log.txt').read_text()
    assert line.capitalize() in (plants / 'model/report.html').read_text()


def test_predict_gives_one_row_per_plant(plants, run, capsys):
    out = plants / 'results.csv'
    (plants / 'photographs/elm/loose.png').write_bytes(
        (plants / 'photographs/elm/plant0_0.png').read_bytes()
    )
    images, pattern = plants / 'photographs', r'[a-z]+/plant\d'
    command = 'predict', plants / 'model', images, '--plant', pattern
    assert run(*command, '--out', out) == 0
    printed = capsys.readouterr()
    lines = printed.out.splitlines()
    assert len(lines) == 13
    assert lines[0].startswith('ash/plant0 (3 photos)  ')
    warning = next(x for x in printed.err.splitlines() if 'loose' in x)
    assert '1 of 37' in warning
    dependence = FitFolder(plants / 'model').read().plants.dependence
    assert f'dependence {dependence:.2f} (measured by fit)' in printed.err
    rows = [*csv.DictReader(out.open(encoding='utf-8-sig'))]
    assert [row['photos'] for row in rows].count('3') == 12
    listed = [x for row in rows for x in row['images'].split(' | ')]
    assert {*listed} == {*map(str, images.rglob('*.png'))}
    assert len(listed) == 37


@pytest.mark.parametrize(
    'options, problem',
    [
        (['--plant', 'tree'], '--plant tree'),
        (['--labels', 'table.csv'], '--plant COLUMN'),
        (['--plant', r'\d', '--tokens', '--out', 'x.csv'], '--tokens'),
    ],
)
def test_predict_refuses_plants_in_one_line(
    plants, run, capsys, options, problem
):
    command = 'predict', plants / 'model', plants / 'photographs'
    assert run(*command, *options) == 2
    printed = capsys.readouterr()
    assert problem in printed.err.splitlines()[-1] and not printed.out
