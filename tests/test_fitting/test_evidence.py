# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import csv

import torch

from mmclca.datasets.photographs import Checked, Photographs
from mmclca.fitting.model_folder import ModelFolder
from mmclca.fitting.probing import write_table

PHOTOGRAPHS = Photographs(
    paths=['/a/0.jpg', '/a/1.jpg', '/b/0.jpg', '/b/1.jpg'],
    labels=[0, 0, 1, 1],
    classes=['ash', 'elm, the'],
    groups=['p1', 'p1', 'p2', 'p3'],
    splits=['train', 'train', 'train', 'test'],
    source='/',
    left_out={'/a/note.doc': 'no image'},
)
CHECKED = Checked(
    photographs=PHOTOGRAPHS,
    unread={'/a/2.jpg': 'cut short'},
    doubled=[('/a/3.jpg', '/a/0.jpg')],
    conflicts=[('/a/4.jpg', '/b/4.jpg')],
    leaks=[('/b/5.jpg', '/b/1.jpg')],
    untrained={},
    single=[],
    alike=[],
    split_groups=[],
)


def test_each_photograph_has_a_row(tmp_path):
    folder = ModelFolder(tmp_path)
    probabilities = torch.tensor([[0.9, 0.1], [0.2, 0.8], [torch.nan] * 2])
    write_table(folder, CHECKED, probabilities)
    with folder.table.open(newline='') as file:
        rows = {row['path']: row for row in csv.DictReader(file)}
    assert len(rows) == 10
    first, second, untested = (rows[p] for p in PHOTOGRAPHS.paths[:3])
    assert (first['predicted'], first['p_given']) == ('ash', '0.900000')
    assert (second['predicted'], second['p_given']) == ('elm, the', '0.200000')
    assert (untested['predicted'], untested['p_given']) == ('', '')
    assert untested['group'] == 'p2' and untested['used'] == 'True'
    why = {path: row['why_not'] for path, row in rows.items()}
    assert why['/b/1.jpg'] == 'held out in test'
    assert why['/a/2.jpg'] == 'cut short'
    assert why['/a/3.jpg'] == 'same as /a/0.jpg'
    assert why['/a/4.jpg'] == why['/b/4.jpg']
    assert why['/b/5.jpg'] == 'same as /b/1.jpg'
    assert why['/a/note.doc'] == 'no image'
    assert [r['used'] for r in rows.values()].count('True') == 3
