# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""ReaL labels and ImageNet-V2, of tiny trees as they are released."""

import json
import pickle
from pathlib import Path

import pytest
import torch
from mmpretrain.datasets import ImageNet
from mmpretrain.structures import DataSample
from PIL import Image

from mmclca.registry import DATASETS, METRICS

PACK = [dict(type='LoadImageFromFile'), dict(type='PackInputs')]
LABELS = [[7, 900], [], [3], [0, 1, 2], *[[]] * 49_996]


@pytest.fixture
def root(tmp_path):
    """Four images of validation, labels of all; twelve of V2."""
    (tmp_path / 'imagenet/meta').mkdir(parents=True)
    (tmp_path / 'imagenet/val').mkdir()
    names = [f'ILSVRC2012_val_{n:08d}.JPEG' for n in (4, 3, 2, 1)]
    for name in names:
        Image.new('RGB', (8, 8)).save(tmp_path / 'imagenet/val' / name)
    lines = ''.join(f'{name} 5\n' for name in names)
    (tmp_path / 'imagenet/meta/val.txt').write_text(lines)
    (tmp_path / 'imagenet/real.json').write_text(json.dumps(LABELS))
    for label in (0, 2, 10, 999):
        folder = tmp_path / 'v2' / str(label)
        folder.mkdir(parents=True)
        for n in range(3):
            Image.new('RGB', (8, 8)).save(folder / f'{n}{label}.jpeg')
    (tmp_path / 'v2/README').write_text('')
    return tmp_path


def real(root):
    labels = str(root / 'imagenet/real.json')
    return METRICS.build(dict(type='mmclca.ReaLAccuracy', labels=labels))


def test_one_of_the_labels_that_a_name_finds_is_right(root):
    """Of four images, of which one has no label, in another order."""
    dataset = ImageNet(str(root / 'imagenet'), 'val', pipeline=PACK)
    metric, samples = real(root), []
    for image, named in zip(dataset, (2, 4, 5, 900), strict=True):
        sample = image['data_samples'].set_pred_label(named)
        samples.append(sample.to_dict())
    metric.process(None, samples)
    assert metric.evaluate(4) == {'accuracy/top1': pytest.approx(200 / 3)}


def test_folders_are_labels_not_in_the_order_of_texts(root):
    dataset = DATASETS.build(
        dict(
            type='mmclca.ImageNetV2', data_root=str(root / 'v2'), pipeline=PACK
        )
    )
    labels = [int(image['data_samples'].gt_label) for image in dataset]
    assert sorted(labels) == [0] * 3 + [2] * 3 + [10] * 3 + [999] * 3
    for n, label in enumerate(labels):
        assert dataset.get_data_info(n)['img_path'].endswith(f'{label}.jpeg')
    assert isinstance(dataset[0]['data_samples'], DataSample)


def test_what_is_missing_is_named(root):
    metric = real(root)
    for path in ('a/ILSVRC2012_val_00050001.JPEG', 'a/0.png'):
        sample = dict(img_path=path, pred_label=torch.tensor([3]))
        with pytest.raises(ValueError, match=f'{path} '):
            metric.process(None, [sample])
    for wrong in (LABELS[1:], [3] * 50_000, {}):
        (root / 'imagenet/real.json').write_text(json.dumps(wrong))
        with pytest.raises(ValueError, match='50000'):
            real(root)
    (root / 'imagenet/real.json').write_text('[' * 100_000)
    with pytest.raises(ValueError, match='50000'):
        real(root)
    (root / 'imagenet/real.json').unlink()
    with pytest.raises(FileNotFoundError):
        real(root)
    gone = dict(type='mmclca.ImageNetV2', data_root=str(root / 'gone'))
    with pytest.raises(FileNotFoundError, match='gone/0 to'):
        DATASETS.build(dict(gone, pipeline=PACK))


@pytest.mark.parametrize('name', ['real.pkl', 'real.yaml'])
def test_labels_run_no_code(tmp_path, name):
    class Evil:
        def __reduce__(self):
            return Path.touch, (tmp_path / 'ran',)

    text = f'!!python/object/apply:os.mkdir ["{tmp_path / "ran"}"]'.encode()
    code = pickle.dumps(Evil()) if name == 'real.pkl' else text
    (tmp_path / name).write_bytes(code)
    labels = str(tmp_path / name)
    with pytest.raises(ValueError, match='JSON'):
        METRICS.build(dict(type='mmclca.ReaLAccuracy', labels=labels))
    assert not (tmp_path / 'ran').exists()
