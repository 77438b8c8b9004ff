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

from mmclca.apis.answers import SetRule
from mmclca.apis.features import extract_features
from mmclca.apis.gallery import Gallery
from mmclca.datasets.photos import LabeledImages
from mmclca.evaluation.open_set import Threshold
from mmclca.page import open_model

pytest.importorskip('gradio', reason='extra demo: pip install gradio')

import gradio as gr

from mmclca.page.blocks import build_page, build_tabs
from mmclca.page.explore import build_explore, explore
from mmclca.page.identify import IdentifyTab
from mmclca.page.loaded_model import LoadedModel, ModelVersion
from mmclca.page.plant import SeenPlant
from mmclca.page.variants import MeasuredCost

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
def tab(folder):
    return IdentifyTab(folder / 'uploads', open_model(folder / 'tiny.pth'))


def upload(folder, name='leaf.png', size=(32, 32), seed=0):
    noise = np.random.default_rng(seed).integers(0, 255, (32, 32, 3), np.uint8)
    Image.fromarray(noise).resize(size).save(folder / name)
    return dict(path=folder / name)


def test_identify_names_a_photo_and_explore_shows_its_patches(tab):
    photo = upload(tab.uploads, size=(2000, 1000))
    first, answer = tab.identify(photo)
    assert first.preview.size == (1024, 512) and first.answer.verdict == ''
    scores = first.answer.prediction.scores
    assert {*scores} == {*CLASSES}
    assert (first.similar, answer.similar) == (None, [])
    first, exploration = explore(answer.plant, 'SiT', 0.5)
    assert first.scores == pytest.approx(scores)
    captions = [caption for _, caption in first.pictures]
    assert captions[0] == '16 patches' and captions[1].endswith(', mixed')
    (legend,) = first.legend.values()
    assert 'brighter patches' in legend
    reduced, full = exploration.costs
    assert first.costs is None and full.gmacs > reduced.gmacs > 0
    assert reduced.title == 'SiT, keep rate 0.5'
    assert [*explore(None, 'SiT', 0.5)] == [None]


def test_tabs_show_an_answer_first_without_similar_photos(tab):
    with gr.Blocks(), gr.Tabs():
        parts = build_tabs(tab, gr.State()).photo
    first, answer = tab.identify(upload(tab.uploads))
    update = parts.show(first)
    assert {*update} == {*parts.outputs}
    assert update[parts.classes] == first.answer.prediction.scores
    (gallery,) = parts.show(answer).values()
    assert not gallery.visible
    assert {*parts.show(None)} == {*parts.outputs}
    unknown = parts.show_answer(replace(first.answer, unknown='none'))
    assert unknown[parts.classes] == 'Unknown'


@pytest.mark.parametrize('limit, words', [(2, 'Score 0.'), (-2, '')])
def test_identify_describes_a_photo_of_an_unknown_class(
    limit, words, tab, monkeypatch
):
    threshold = Threshold('max_softmax', limit, 'tiny')
    monkeypatch.setattr(tab.model.inferencer, 'threshold', threshold)
    answer, _ = tab.identify(upload(tab.uploads))
    verdict = answer.answer.verdict
    assert words in verdict and bool(words) == ('none of the known' in verdict)
    assert bool(words) == ('Nearest class' in verdict)


def test_identify_returns_gallery_images_by_similarity(tab):
    paths = [
        str(upload(tab.uploads, f'{seed}.png', seed=seed)['path'])
        for seed in range(3)
    ]
    images = LabeledImages.from_names([*paths, 'gone.png'], CLASSES, 'here')
    features, _ = extract_features(tab.model.inferencer, paths)
    features = torch.cat((features, -features[:1]))
    gallery = Gallery(images, features, 'tiny', 'pre_logits')
    model = replace(tab.model, gallery=gallery)
    *_, answer = IdentifyTab(tab.uploads, model).identify(dict(path=paths[1]))
    assert len(answer.similar) == 3
    assert answer.similar[0].caption == 'beech 1.000'


def test_methods_are_those_of_the_photo_and_fix_the_slider(tab):
    with gr.Blocks(), gr.Tab() as opened:
        parts = build_explore(gr.State(), opened)
    seen = SeenPlant(tab.model, {})
    update = parts.show_methods(seen, None, 0.9)
    method, slider = update[parts.method], update[parts.keep_rate]
    assert method.value == 'SiT' and ('ToMe' in str(method.choices))
    assert (slider.value, slider.interactive) == (0.5, False)
    assert 'Fixed at 0.5' in slider.info
    update = parts.show_methods(seen, 'TopK', 0.9)
    method, slider = update[parts.method], update[parts.keep_rate]
    assert (method.value, slider.value) == ('TopK', 0.9)
    assert slider.interactive
    update = parts.show_methods(None, None, 0.9)
    assert update == dict.fromkeys([parts.method, parts.keep_rate], gr.skip())


def test_costs_of_a_method_are_shown_with_three_digits(tab):
    with gr.Blocks(), gr.Tab() as opened:
        parts = build_explore(gr.State(), opened)
    first, exploration = explore(
        [*tab.identify(upload(tab.uploads))][0].plant, 'TopK', 0.5
    )
    assert parts.show(first)[parts.costs] is None
    costs = [MeasuredCost('TopK', 0.123456, 7.89123)]
    update = parts.show(replace(exploration, costs=costs))
    assert update == {parts.costs: [['TopK', 0.123, 7.89]]}
    assert parts.show(None) == dict.fromkeys(parts.results)


def test_tabs_use_the_model_that_their_visitor_chose(tab, tmp_path):
    names = 'sit', 'resmlp'
    versions = [ModelVersion(tmp_path / name, 0, name) for name in names]
    for version, options in zip(versions, (SIT, RESMLP), strict=True):
        folder = version.folder / 'model'
        folder.mkdir(parents=True)
        write_tiny(folder, **options)
        (folder / 'tiny.pth').rename(folder / 'model.pth')
    later = IdentifyTab(tab.uploads)
    with gr.Blocks(), gr.Tabs():
        tabs = build_tabs(later, gr.State())
    assert tabs.show(None)[tabs.about] is None
    first_scores = {}
    order = ((versions[0], True), (versions[1], False), (versions[0], True))
    for version, has_tokens in order:
        update = tabs.show(version)
        about = update[tabs.about]
        assert about.startswith(f'{version.folder.name}, 4 classes: ash')
        assert {*update} == {*tabs.outputs}
        assert update[tabs.explore].visible == has_tokens
        answer, _ = later.identify(upload(tab.uploads), version)
        assert answer.plant.model.about == about
        scores = answer.answer.prediction.scores
        assert {*scores} == {*CLASSES}
        assert first_scores.setdefault(version, scores) == scores


def test_identify_reads_uploaded_images_only(tab):
    folder = tab.uploads
    (folder / 'bad.png').write_text('<b>no</b>')
    upload(folder.parent, 'mine.png')
    (folder / 'link.png').symlink_to(folder.parent / 'mine.png')
    refused = {'bad.png': '&lt;b&gt;'}  # escaped
    refused |= dict.fromkeys(('../mine.png', 'link.png'), 'not uploaded')
    for name, term in refused.items():
        with pytest.warns(UserWarning, match=term):
            assert [*tab.identify(dict(path=folder / name))] == [None]
    for forged in (None, 'x', {}, dict(path=None), dict(path='\0')):
        with pytest.warns(UserWarning, match='not uploaded'):
            assert [*tab.identify(forged)] == [None]


def test_page_runs_one_event_at_a_time(tab):
    *events, load = build_page(tab).fns.values()
    limits = {(x.concurrency_id, x.concurrency_limit) for x in events}
    assert limits == {('model', 1)} and not load.queue


@pytest.fixture
def set_rule(monkeypatch):
    """Set the rule for prediction sets, which needs a model folder."""

    def set_rule(rule):
        monkeypatch.setattr(LoadedModel, 'find_rule', lambda *_: rule)

    return set_rule


def test_identify_names_the_classes_that_may_be_right(tab, set_rule):
    set_rule(SetRule(95, 0.0, dict.fromkeys(CLASSES, '*tree')))
    first, _ = tab.identify(upload(tab.uploads))
    names = ' or '.join(first.answer.prediction.scores)
    assert first.answer.guarantee == (rf'With 95% guarantee: \*tree ({names})')
    with gr.Blocks(), gr.Tabs():
        parts = build_tabs(tab, gr.State()).photo
    assert parts.show(first)[parts.verdict] == first.answer.guarantee
    set_rule(SetRule(95, 1.0))
    first, _ = tab.identify(upload(tab.uploads))
    best = next(iter(first.answer.prediction.scores))
    assert first.answer.guarantee.endswith(best)
    set_rule(None)
    assert next(tab.identify(upload(tab.uploads))).answer.guarantee == ''
