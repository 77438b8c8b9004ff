# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import csv
import json
from functools import partial

import pytest
import torch
from tiny_model import write_tiny
from tiny_run import CLASSES, write_images

from mmclca.apis import output
from mmclca.visualization import figures


@pytest.fixture(scope='module')
def folder(tmp_path_factory):
    """Folder with tiny.pth, training images data and new images new."""
    folder = tmp_path_factory.mktemp('tiny')
    torch.manual_seed(0)
    write_tiny(folder)
    write_images(folder / 'new', per_class=2, seed=1)
    return folder


@pytest.fixture
def retrieve(run, folder):
    """Run the tool on tiny.pth and return both output streams."""
    return partial(run, 'retrieval.py', folder / 'tiny.pth', '--device=cpu')


def written(path):
    found = json.loads(path.read_text())
    return found['queries'], found['metrics']


def test_splits_of_the_config_are_the_default(retrieve, folder, tmp_path):
    retrieve('--gallery', folder / 'data', '--out', tmp_path / 'a.json')
    config = '--config', folder / 'tiny.py'
    retrieve(
        '--out', tmp_path / 'b.json', *config
    )  # both splits use the folder data
    ours, theirs = (written(tmp_path / f'{n}.json')[1] for n in 'ab')
    assert ours == theirs
    for split in ('train', 'test'):
        new = f'{split}_dataloader.dataset.data_root={folder / "new"}'
        retrieve('--out', tmp_path / 'c.json', *config, '--cfg-options', new)
        entries, _ = written(tmp_path / 'c.json')
        assert len(entries) == dict(train=16, test=8)[split]
        found = entries[0]['neighbors'][0]['image']
        assert ('/new/' in found) == (split == 'train')


def test_queries_may_lack_a_class(retrieve, folder, tmp_path):
    out = tmp_path / 'r.csv'
    printed = retrieve(
        *('--gallery', folder / 'data', '--queries', folder / 'new/oak'),
        *('--out', out, '--topk', 2),
    )
    header, *rows = csv.reader(out.open())
    assert header[:6] == [
        *('image', 'name', 'knn_class', 'knn_score', 'average_precision'),
        'image_1',
    ]
    assert len(rows) == 2 and all(len(row) == 5 + 2 * 3 for row in rows)
    assert rows[0][1] == rows[0][4] == '' and rows[0][2] in CLASSES
    assert 'mAP' not in printed.out


def test_index_gives_the_same_neighbors(retrieve, folder, tmp_path):
    index = tmp_path / 'g.safetensors'
    query = '--queries', folder / 'new', '--out'
    retrieve(
        *('--gallery', folder / 'data', '--save-index', index),
        *(*query, tmp_path / 'a.json'),
    )
    retrieve('--index', index, *query, tmp_path / 'b.json')
    assert written(tmp_path / 'a.json') == written(tmp_path / 'b.json')
    option = '--cfg-options', 'model.backbone.reducer.keep_rate=0.3'
    with pytest.raises(
        ValueError, match='another model, keep rate or feature'
    ):
        retrieve('--index', index, *option)


def test_sheet_shows_votes_and_frames(retrieve, folder, tmp_path, monkeypatch):
    drawn = []
    monkeypatch.setattr(
        output, 'contact_sheet', lambda groups, out: drawn.append(groups)
    )
    sheet, out = tmp_path / 's.png', tmp_path / 'r.json'
    retrieve(
        *('--gallery', folder / 'data', '--queries', folder / 'new/oak'),
        *('--sheet', sheet, '--sheet-nearest', 4, '--out', out),
    )
    entries, _ = written(out)
    (groups,) = drawn
    assert list(groups) == ['1: 0.png', '2: 1.png']
    for entry, cells in zip(entries, groups.values(), strict=True):
        near, voted = entry['neighbors'][:4], entry['knn_class']
        lines = [f'{n["similarity"]:.3f} {n["name"]}' for n in near]
        assert [cell.note for cell in cells] == [f'vote: {voted}', *lines]
        colours = [figures.FRAMES[n['name'] == voted] for n in near]
        assert [cell.frame for cell in cells] == [None, *colours]
    coarse_of = dict(zip(CLASSES, 'aabb', strict=True))
    found = ['ash', 'beech', 'elm', None]
    near = [dict(image=entry['image'], name=n, similarity=1) for n in found]
    one = dict(entry, name='ash', neighbors=near)
    output.draw_neighbors([one], sheet, coarse_of=coarse_of)
    *_, cells = drawn[-1].values()
    colours = [figures.FRAMES[x] for x in (True, 'coarse', False, None)]
    assert [cell.frame for cell in cells] == [None, *colours]


def test_coarse_table_adds_metrics_per_level(retrieve, folder, tmp_path):
    table = tmp_path / 'levels.csv'
    rows = [f'{name},{name[0] in "ae"},all' for name in CLASSES]
    table.write_text('\n'.join(['class,vowel,tree', *rows]))
    places = '--queries', folder / 'new', '--gallery', folder / 'data'
    more = '--coarse', table, '--ranking', 'oracle', '--neighbors', '0'
    printed = retrieve(*places, *more).out
    assert 'vowel mAP ' in printed and 'tree knn_top1 100.00%' in printed


def test_sheet_shows_evenly_spaced_queries(monkeypatch, tmp_path):
    drawn = []
    monkeypatch.setattr(output, 'draw_photo', lambda path, **_: path)
    monkeypatch.setattr(
        output, 'contact_sheet', lambda groups, out: drawn.extend(groups)
    )
    entries = [dict(image=f'{i}', name='x', neighbors=[]) for i in range(15)]
    output.draw_neighbors(entries, tmp_path / 's.png', 8, 5)
    found = [int(name.split()[1]) for name in drawn]
    assert found == [0, 1, 3, 5, 7, 9, 11, 13]
