# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import torch

from mmclca.datasets.photographs import Checked, LabeledImages
from mmclca.fitting.probing import photo_rows
from mmclca.utils.files import write_rows

PHOTOGRAPHS = LabeledImages(
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
    digests={'/a/0.jpg': 'd0'},
)


TABLE = """path,class,group,split,used,why_not,predicted,p_given,p_predicted,\
digest
/a/0.jpg,ash,p1,train,True,,ash,0.900000,0.900000,d0
/a/1.jpg,ash,p1,train,True,,"elm, the",0.200000,0.800000,
/b/0.jpg,"elm, the",p2,train,True,,,,,
/b/1.jpg,"elm, the",p3,test,False,held out in test,,,,
/a/note.doc,,,,False,no image,,,,
/a/2.jpg,,,,False,cut short,,,,
/a/3.jpg,,,,False,same as /a/0.jpg,,,,
/b/5.jpg,,,,False,same as /b/1.jpg,,,,
/a/4.jpg,,,,False,same photo in several classes,,,,
/b/4.jpg,,,,False,same photo in several classes,,,,
"""


def test_each_photograph_has_a_row(tmp_path):
    probabilities = torch.tensor([[0.9, 0.1], [0.2, 0.8], [torch.nan] * 2])
    write_rows(tmp_path / 'rows.csv', photo_rows(CHECKED, probabilities))
    assert (tmp_path / 'rows.csv').read_text() == TABLE
