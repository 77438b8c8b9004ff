# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Event handlers of the tabs; test_page_in_browser.py drives the page."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from PIL import Image
from small_models import RESMLP
from tiny_model import write_tiny
from tiny_run import CLASSES

from mmclca.apis.features import extract_features
from mmclca.apis.gallery import Gallery
from mmclca.datasets.photos import LabeledImages
from mmclca.evaluation.open_set import Threshold
from mmclca.page import open_model

pytest.importorskip('gradio', reason='extra demo: pip install gradio')

import gradio as gr

from mmclca.page.blocks import build_page, build_tabs
from mmclca.page.explore import explore, show_methods
from mmclca.page.identify import Identification

SIT = dict(reducer=dict(type='mmclca.SiT', keep_rate=0.5), reduce_at=(1,))


@pytest.fixture(scope='module')
def folder(tmp_path_factory):
    """Folder with uploads, and a SiT model in ``tiny.pth``."""
    folder = tmp_path_factory.mktemp('sit')
    torch.manual_seed(0)
    write_tiny(folder, **SIT)
    (folder / 'uploads').mkdir()
    return folder


@pytest.fixture(scope='module')
def page(folder):
    return Identification(folder / 'uploads', open_model(folder / 'tiny.pth'))


def upload(folder, name='leaf.png', size=(32, 32), seed=0):
    noise = np.random.default_rng(seed).integers(0, 255, (32, 32, 3), np.uint8)
    Image.fromarray(noise).resize(size).save(folder / name)
    return dict(path=folder / name)


def test_identify_names_a_photo_and_explore_shows_its_patches(page):
    photo = upload(page.uploads, size=(2000, 1000))
    (shown, seen, verdict, scores, _), (*_, similar) = page.identify(photo)
    assert shown.size == (1024, 512) and verdict == ''
    assert {*scores} == {*CLASSES} and not similar.visible
    first, (*_, costs) = explore(seen, 'SiT', 0.5)
    same, pictures, looks, no_costs = first
    assert same == pytest.approx(scores)
    captions = [caption for _, caption in pictures]
    assert captions[0] == '16 patches' and captions[1].endswith(', mixed')
    assert 'brighter patches' in looks[0][0]
    here, plain = costs
    assert no_costs is None and plain[1] > here[1] > 0
    assert here[0] == 'SiT, keep rate 0.5'
    assert [*explore(None, 'SiT', 0.5)] == [[None] * 4]


@pytest.mark.parametrize('limit, words', [(2, 'Score 0.'), (-2, '')])
def test_identify_describes_a_photo_of_an_unknown_class(
    limit, words, page, monkeypatch
):
    threshold = Threshold('max_softmax', limit, 'tiny')
    monkeypatch.setattr(page.model.inferencer, 'threshold', threshold)
    (*_, verdict, name, _), _ = page.identify(upload(page.uploads))
    assert words in verdict and bool(words) == ('none of the known' in verdict)
    assert bool(words) == (name == 'Unknown') == ('Nearest class' in verdict)


def test_identify_returns_gallery_images_by_similarity(page):
    paths = [
        str(upload(page.uploads, f'{seed}.png', seed=seed)['path'])
        for seed in range(3)
    ]
    images = LabeledImages.from_names([*paths, 'gone.png'], CLASSES, 'here')
    features, _ = extract_features(page.model.inferencer, paths)
    features = torch.cat((features, -features[:1]))
    gallery = Gallery(images, features, 'tiny', 'pre_logits')
    model = replace(page.model, gallery=gallery)
    *_, (*_, found) = Identification(page.uploads, model).identify(
        dict(path=paths[1])
    )
    assert found.visible and len(found.value) == 3
    assert found.value[0]['caption'] == 'beech 1.000'


def test_methods_are_those_of_the_photo_and_fix_the_slider(page):
    seen = page.model, None
    method, slider = show_methods(seen, None, 0.9)
    assert method.value == 'SiT' and ('ToMe' in str(method.choices))
    assert (slider.value, slider.interactive) == (0.5, False)
    assert 'Fixed at 0.5' in slider.info
    method, slider = show_methods(seen, 'TopK', 0.9)
    assert (method.value, slider.value, slider.interactive) == (
        *('TopK', 0.9),
        True,
    )


def test_tabs_use_the_model_that_their_visitor_chose(page, tmp_path):
    keys = [(tmp_path / 'sit', 0), (tmp_path / 'resmlp', 0)]
    for (folder, _), options in zip(keys, (SIT, RESMLP), strict=True):
        (folder / 'model').mkdir(parents=True)
        write_tiny(folder / 'model', **options)
        (folder / 'model/tiny.pth').rename(folder / 'model/model.pth')
    later = Identification(page.uploads)
    with gr.Blocks(), gr.Tabs():
        show_model, (opened,), outputs = build_tabs(later, gr.State())
    assert show_model(opened.value)[-2] is None
    found = {}
    for key, has_tokens in zip((*keys, keys[0]), (1, 0, 1), strict=True):
        *_, about, tab = show_model(key)
        assert about.startswith(f'{key[0].name}, 4 classes: ash')
        assert len(outputs) == 7 and tab.visible == has_tokens
        (_, (model, _), _, scores, _), _ = later.identify(
            upload(page.uploads), key
        )
        assert model.about == about and {*scores} == {*CLASSES}
        assert found.setdefault(key, scores) == scores


def test_identify_reads_uploaded_images_only(page):
    folder = page.uploads
    (folder / 'bad.png').write_text('<b>no</b>')
    upload(folder.parent, 'mine.png')
    (folder / 'link.png').symlink_to(folder.parent / 'mine.png')
    refused = {'bad.png': '&lt;b&gt;'}  # escaped
    refused |= dict.fromkeys(('../mine.png', 'link.png'), 'not uploaded')
    for name, term in refused.items():
        with pytest.warns(UserWarning, match=term):
            (found,) = page.identify(dict(path=folder / name))
        assert found[:4] == [None] * 4


def test_page_runs_one_event_at_a_time(page):
    *events, load = build_page(page).fns.values()
    limits = {(x.concurrency_id, x.concurrency_limit) for x in events}
    assert limits == {('model', 1)} and not load.queue
