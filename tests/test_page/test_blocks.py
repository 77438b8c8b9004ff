# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""What the page gives its parts; test_page_in_browser.py sees them."""

import numpy as np
import pytest
import torch
from PIL import Image
from tiny_model import write_tiny
from tiny_run import CLASSES

from mmclca.apis import TokenReductionInferencer
from mmclca.apis.features import extract_features
from mmclca.apis.gallery import Gallery
from mmclca.datasets.photographs import LabeledImages

pytest.importorskip('gradio', reason='extra demo: pip install gradio')

from mmclca.page.blocks import Callbacks, about_model

SIT = dict(reducer=dict(type='mmclca.SiT', keep_rate=0.5), reduce_at=(1,))


@pytest.fixture
def callbacks(tmp_path):
    """Of a model whose patches are mixed, and a folder of uploads."""
    torch.manual_seed(0)
    write_tiny(tmp_path, **SIT)
    (tmp_path / 'uploads').mkdir()
    model = TokenReductionInferencer(tmp_path / 'tiny.pth', device='cpu')
    return Callbacks(model, tmp_path / 'uploads')


def sent(folder, name='leaf.png', size=(32, 32), seed=0):
    noise = np.random.default_rng(seed).integers(0, 255, (32, 32, 3), np.uint8)
    Image.fromarray(noise).resize(size).save(folder / name)
    return dict(path=folder / name)


def test_a_leaf_is_answered(callbacks):
    upload = sent(callbacks.uploads, size=(2000, 1000))
    shown, packed = callbacks.read_upload(upload)
    assert shown.size == (1024, 512)
    first, (*_, costs) = callbacks.predict(packed, 'SiT', 0.5)
    scores, (row,), pictures, looks, no_costs = first
    assert set(scores) == set(CLASSES) and row[0] == next(iter(scores))
    captions = [caption for _, caption in pictures]
    assert captions[0] == '16 patches' and captions[1].endswith(', mixed')
    assert 'brighter patches' in looks[0][0]
    here, plain = costs
    assert no_costs is None and plain[1] > here[1] > 0
    assert here[0] == 'SiT, keep rate 0.5'
    assert callbacks.find_similar(packed) is None  # without a gallery
    assert [*callbacks.predict(None, 'SiT', 0.5)] == [[None] * 5]


def test_images_that_are_alike(callbacks):
    paths = [
        str(sent(callbacks.uploads, f'{seed}.png', seed=seed)['path'])
        for seed in range(3)
    ]
    images = LabeledImages.named([*paths, 'gone.png'], CLASSES, 'here')
    model = callbacks.variants.trained
    features, _ = extract_features(model, paths)
    features = torch.cat((features, -features[:1]))
    callbacks.gallery = Gallery(images, features, 'tiny', 'pre_logits')
    packed = callbacks.read_upload(dict(path=paths[1]))[1]
    alike = callbacks.find_similar(packed)
    assert len(alike) == 3 and alike[0][0].size == (32, 32)
    assert alike[0][1] == 'beech 1.00'


def test_the_slider_follows_the_method(callbacks):
    slider = callbacks.select_method('SiT')
    assert (slider.value, slider.interactive) == (0.5, False)
    assert 'Fixed at 0.5' in slider.info
    assert callbacks.select_method('TopK').interactive


def test_only_pictures_that_were_uploaded_are_read(callbacks):
    folder = callbacks.uploads
    (folder / 'bad.png').write_text('<b>no</b>')
    sent(folder.parent, 'mine.png')
    (folder / 'link.png').symlink_to(folder.parent / 'mine.png')
    refused = {'bad.png': 'cannot be read .not an image: .*&lt;b&gt;'}
    for name in ('../mine.png', 'link.png'):
        refused[name] = 'not uploaded to this page'
    for name, said in refused.items():
        with pytest.warns(UserWarning, match=said):
            answered = callbacks.read_upload(dict(path=folder / name))
        assert answered == (None, None)
    assert callbacks.read_upload(sent(folder))[0].size == (32, 32)


def test_model_is_named():
    said = about_model('a.pth', CLASSES)
    assert said == 'a.pth, 4 classes: ash, beech, elm, oak'
    many = about_model('', [f'c{n}' for n in range(80)])
    assert many == 'This model, 80 classes: c0, c1, c2, c3, c4, c5 and 74 more'
