# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import os

import pytest
from PIL import Image

from mmclca.datasets.photos.plants import Plants, find_plants

NAMES = ('p1/a.jpg', 'p1/b.jpg', 'p2/a.jpg', 'loose.jpg')


@pytest.fixture
def paths(tmp_path):
    """Photos in two folders, and one without a folder."""
    for name in NAMES:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        Image.new('RGB', (2, 2)).save(tmp_path / name)
    return [str(tmp_path / name) for name in NAMES]


@pytest.mark.parametrize('expression', [r'p\d', r'^(p\d)/'])
def test_plants_are_matches_in_paths_below_the_folder(
    paths, tmp_path, expression
):
    plants = find_plants(paths, tmp_path, expression)
    assert plants == Plants(['p1', 'p1', 'p2', paths[3]], [paths[3]])


def test_plants_come_from_a_column_of_the_table(paths, tmp_path, monkeypatch):
    table = tmp_path / 'plants.csv'
    lines = 'file,tree', 'p1/a.jpg,A', 'p1/b.jpg,B', 'p2/a.jpg,', 'gone.jpg,C'
    table.write_text('\n'.join(lines))
    plants = find_plants(paths, tmp_path, 'tree', table)
    assert plants == Plants(['A', 'B', *paths[2:]], paths[2:])
    # results name files as they were given
    monkeypatch.chdir(tmp_path)
    relative = [os.path.relpath(path) for path in paths]
    assert find_plants(relative, '.', 'tree', 'plants.csv').names == [
        *('A', 'B'),
        *relative[2:],
    ]
    # other texts are expressions, as in fit
    assert find_plants(paths, tmp_path, r'p\d', table).names[2] == 'p2'


@pytest.mark.parametrize(
    'plant, problem', [('q', r'`plant=q` .*p1/a.jpg'), ('(', 'expression')]
)
def test_find_plants_refuses_expressions_without_a_match(
    paths, tmp_path, plant, problem
):
    with pytest.raises(ValueError, match=problem):
        find_plants(paths, tmp_path, plant)


def test_find_plants_refuses_tables_of_other_photos(paths, tmp_path):
    table = tmp_path / 'plants.csv'
    table.write_text('file,tree\ngone.jpg,A\n')
    with pytest.raises(ValueError, match=r'tree.*p1/a.jpg'):
        find_plants(paths, tmp_path, 'tree', table)
    table.write_text('one,two,tree\n1,2,A\n')
    with pytest.raises(ValueError, match='column of files'):
        find_plants(paths, tmp_path, 'tree', table)
    with pytest.raises(FileNotFoundError, match='gone.csv'):
        find_plants(paths, tmp_path, 'tree', tmp_path / 'gone.csv')
