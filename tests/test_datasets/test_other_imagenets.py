# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""ReaL labels and ImageNet-V2, in the form of their release."""

import json
import pickle
from pathlib import Path

import pytest
import torch
from mmpretrain.datasets import ImageNet
from PIL import Image

from mmclca.registry import DATASETS, METRICS

PACK = [dict(type='LoadImageFromFile'), dict(type='PackInputs')]
LABELS = [[7, 900], [], [3], [0, 1, 2], *[[]] * 49_996]


@pytest.fixture
def root(tmp_path):
    """Four validation images with labels, and four images of V2."""
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
        (folder / f'0{label}.jpeg').touch()
    (tmp_path / 'v2/README').write_text('')
    return tmp_path


def real(path):
    return METRICS.build(dict(type='mmclca.ReaLAccuracy', labels=str(path)))


def imagenet_v2(root):
    settings = dict(type='mmclca.ImageNetV2', pipeline=PACK)
    return DATASETS.build(dict(settings, data_root=str(root)))


def test_real_accuracy_accepts_any_label_of_an_image(root):
    dataset = ImageNet(str(root / 'imagenet'), 'val', pipeline=PACK)
    metric, samples = real(root / 'imagenet/real.json'), []
    for image, predicted in zip(dataset, (2, 4, 5, 900), strict=True):
        sample = image['data_samples'].set_pred_label(predicted)
        samples.append(sample.to_dict())
    metric.process(None, samples)
    assert metric.evaluate(4) == {'accuracy/top1': pytest.approx(200 / 3)}


def test_imagenet_v2_reads_labels_from_folder_names(root):
    dataset = imagenet_v2(root / 'v2')
    infos = [dataset.get_data_info(n) for n in range(len(dataset))]
    assert sorted(info['gt_label'] for info in infos) == [0, 2, 10, 999]
    for info in infos:
        assert info['img_path'].endswith(f'/0{info["gt_label"]}.jpeg')


def test_missing_images_and_labels_are_named(root):
    labels = root / 'imagenet/real.json'
    metric = real(labels)
    for path in ('a/ILSVRC2012_val_00050001.JPEG', 'a/0.png'):
        sample = dict(img_path=path, pred_label=torch.tensor([3]))
        with pytest.raises(ValueError, match=path):
            metric.process(None, [sample])
    for wrong in (LABELS[1:], [3] * 50_000, {}):
        labels.write_text(json.dumps(wrong))
        with pytest.raises(ValueError, match='50000'):
            real(labels)
    labels.write_text('[' * 100_000)
    with pytest.raises(ValueError, match='50000'):
        real(labels)
    labels.unlink()
    with pytest.raises(FileNotFoundError):
        real(labels)
    with pytest.raises(FileNotFoundError, match='gone/0'):
        imagenet_v2(root / 'gone')


@pytest.mark.parametrize('name', ['real.pkl', 'real.yaml'])
def test_label_files_run_no_code(tmp_path, name):
    class Evil:
        def __reduce__(self):
            return Path.touch, (tmp_path / 'ran',)

    payload = f'!!python/object/apply:os.mkdir ["{tmp_path / "ran"}"]'.encode()
    code = pickle.dumps(Evil()) if name == 'real.pkl' else payload
    (tmp_path / name).write_bytes(code)
    with pytest.raises(ValueError, match='JSON'):
        real(tmp_path / name)
    assert not (tmp_path / 'ran').exists()
