# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Event handlers of the page; test_page_in_browser.py drives the page."""

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

from mmclca.page.blocks import Callbacks, about_model, build_page

SIT = dict(reducer=dict(type='mmclca.SiT', keep_rate=0.5), reduce_at=(1,))


@pytest.fixture(scope='module')
def callbacks(tmp_path_factory):
    """Callbacks for a SiT model, with an upload folder."""
    folder = tmp_path_factory.mktemp('sit')
    torch.manual_seed(0)
    write_tiny(folder, **SIT)
    (folder / 'uploads').mkdir()
    model = TokenReductionInferencer(folder / 'tiny.pth', device='cpu')
    return Callbacks(model, folder / 'uploads')


def upload(folder, name='leaf.png', size=(32, 32), seed=0):
    noise = np.random.default_rng(seed).integers(0, 255, (32, 32, 3), np.uint8)
    Image.fromarray(noise).resize(size).save(folder / name)
    return dict(path=folder / name)


def test_predict_yields_the_prediction_then_the_cost(callbacks):
    photo = upload(callbacks.uploads, size=(2000, 1000))
    shown, packed = callbacks.read_upload(photo)
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


def test_find_similar_returns_gallery_images_by_similarity(
    callbacks, monkeypatch
):
    paths = [
        str(upload(callbacks.uploads, f'{seed}.png', seed=seed)['path'])
        for seed in range(3)
    ]
    images = LabeledImages.named([*paths, 'gone.png'], CLASSES, 'here')
    model = callbacks.variants.trained
    features, _ = extract_features(model, paths)
    features = torch.cat((features, -features[:1]))
    gallery = Gallery(images, features, 'tiny', 'pre_logits')
    monkeypatch.setattr(callbacks, 'gallery', gallery)
    packed = callbacks.read_upload(dict(path=paths[1]))[1]
    found = callbacks.find_similar(packed)
    assert len(found) == 3 and found[0][0].size == (32, 32)
    assert found[0][1] == 'beech 1.00'


def test_slider_is_fixed_if_the_method_has_parameters(callbacks):
    slider = callbacks.select_method('SiT')
    assert (slider.value, slider.interactive) == (0.5, False)
    assert 'Fixed at 0.5' in slider.info
    assert callbacks.select_method('TopK').interactive


def test_read_upload_reads_uploaded_images_only(callbacks):
    folder = callbacks.uploads
    (folder / 'bad.png').write_text('<b>no</b>')
    upload(folder.parent, 'mine.png')
    (folder / 'link.png').symlink_to(folder.parent / 'mine.png')
    refused = {'bad.png': '&lt;b&gt;'}  # escaped
    refused |= dict.fromkeys(('../mine.png', 'link.png'), 'not uploaded')
    for name, term in refused.items():
        with pytest.warns(UserWarning, match=term):
            found = callbacks.read_upload(dict(path=folder / name))
        assert found == (None, None)
    assert callbacks.read_upload(upload(folder))[0].size == (32, 32)


def test_page_runs_one_event_at_a_time(callbacks):
    events = build_page(callbacks, [], '').fns.values()
    limits = {(x.concurrency_id, x.concurrency_limit) for x in events}
    assert limits == {('model', 1)}


def test_about_model_lists_the_first_classes():
    text = about_model('a.pth', CLASSES)
    assert text == 'a.pth, 4 classes: ash, beech, elm, oak'
    assert about_model('', 80 * ['c']).endswith('and 74 more')
