# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import os
import pickle

import mmengine
import pytest
import torch

from mmclca.evaluation.predictions import read_predictions

RESULT = dict(
    img_path='leaf.png',
    scale_factor=(1.0, 0.5),
    gt_label=torch.tensor([1]),
    pred_score=torch.tensor([0.25, 0.75]),
)


class Planted:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


def test_read_predictions_reads_files_of_mmengine(tmp_path):
    path = tmp_path / 'results.pkl'
    mmengine.dump([RESULT, RESULT], path)
    for result in read_predictions(path, 'gt_label', 'pred_score'):
        assert result['img_path'] == 'leaf.png'
        assert result['scale_factor'] == (1.0, 0.5)
        assert result['pred_score'].tolist() == [0.25, 0.75]
        assert result['gt_label'].dtype == torch.int64
    with pytest.raises(ValueError, match='a, b'):
        read_predictions(path, 'gt_label', 'b', 'a')


def test_read_predictions_does_not_run_code(tmp_path):
    path = tmp_path / 'results.pkl'
    path.write_bytes(pickle.dumps([Planted(tmp_path / 'made')]))
    with pytest.raises(ValueError, match='mkdir'):
        read_predictions(path)
    assert not (tmp_path / 'made').exists()


@pytest.mark.parametrize('data', [b'', b'text', pickle.dumps([])])
def test_read_predictions_refuses_other_files(tmp_path, data):
    path = tmp_path / 'results.pkl'
    path.write_bytes(data)
    with pytest.raises(ValueError, match='`out`'):
        read_predictions(path)
    with pytest.raises(FileNotFoundError):
        read_predictions(tmp_path / 'gone.pkl')
