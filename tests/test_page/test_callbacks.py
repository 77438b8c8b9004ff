# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""What the page says of a leaf."""

import re
from html.parser import HTMLParser

import numpy as np
import pytest
import torch
from mmengine.config import Config
from mmpretrain import get_model
from PIL import Image
from tiny_model import write_tiny
from tiny_run import CLASSES

from mmclca.apis import TokenReductionInferencer
from mmclca.evaluation.cost import count
from mmclca.page import Speed, Speeds, methods_of, predict, strings
from mmclca.page import html as pieces
from mmclca.visualization.painting import FUSED, KEPT

EVIT = dict(reducer=dict(type='mmclca.EViT', keep_rate=0.5), reduce_at=(0, 1))
SIT = dict(reducer=dict(type='mmclca.SiT', keep_rate=0.5), reduce_at=(1,))


def inferencer(folder, **options):
    torch.manual_seed(0)
    write_tiny(folder, **options)
    return TokenReductionInferencer(folder / 'tiny.pth', device='cpu')


@pytest.fixture(scope='module')
def evit(tmp_path_factory):
    return inferencer(tmp_path_factory.mktemp('evit'), **EVIT)


@pytest.fixture(scope='module')
def leaf():
    noise = np.random.default_rng(0).integers(0, 255, (32, 32, 3), np.uint8)
    return noise


def test_prediction_says_what_the_inferencer_says(evit, leaf):
    found = predict(evit, evit.prepare(leaf), topk=3)
    (expected,) = evit([leaf], return_tokens=True)
    assert len(found.classes) == 3
    assert found.classes[0]['name'] == expected['pred_class']
    assert found.classes[0]['score'] == pytest.approx(
        expected['pred_score'], abs=1e-5
    )
    assert found.gmacs == expected['gmacs']
    assert [s.tokens for s in found.stages] == expected['tokens'][:2]
    shares = [(kept > 0.999).mean() for kept in expected['kept']]
    assert [s.share for s in found.stages] == pytest.approx(shares)
    assert {k for s in found.stages for k in s.kinds} == {KEPT, FUSED}
    # 16 patches, CLS and a CLR token; 1 + 9 + 1, then 1 + 5 + 1
    assert (found.num_patches, found.tokens) == (16, 18)


def test_pictures_show_what_is_kept(evit, leaf):
    found = predict(evit, evit.prepare(leaf))
    (result,) = evit([leaf], return_tokens=True)
    assert found.seen.shape == (336, 336, 3)
    for stage, kept in zip(found.stages, result['kept'], strict=True):
        same = (stage.picture == found.seen).all(axis=2)
        share = same.reshape(4, 84, 4, 84).mean(axis=(1, 3))
        assert (share[kept > 0.999] == 1).all()
        assert (share[kept <= 0.999] < 0.5).all()


def test_mixed_squares_have_no_kinds(tmp_path, leaf):
    model = inferencer(tmp_path, **SIT)
    found = predict(model, model.prepare(leaf))
    assert [stage.kinds for stage in found.stages] == [()]
    drawn = pieces.survivors(found)
    assert 'all squares mixed' in drawn
    assert strings.MIXED in drawn


def test_plain_model_is_the_same_one_without_reduction(evit, leaf, tmp_path):
    packed = evit.prepare(leaf)
    speeds = Speeds(evit)
    here, plain = speeds.compare(evit, packed, 0.5)
    cfg = Config.fromfile(write_config(tmp_path))
    expected = count(get_model(cfg, pretrained=False)).flops / 1e9
    assert plain.gmacs == pytest.approx(expected, rel=1e-6)
    assert here.gmacs == 0.5
    assert 0 < here.milliseconds < 5000
    assert 0 < plain.milliseconds < 5000


def write_config(folder):
    write_tiny(folder, reducer=None, reduce_at=(), cache=None)
    return folder / 'tiny.py'


class Balanced(HTMLParser):
    """Sees that every tag is closed, in order."""

    def __init__(self):
        super().__init__()
        self.open = []

    def handle_starttag(self, tag, attrs):
        if tag not in ('img', 'br'):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def text_of(piece):
    parser = Balanced()
    parser.feed(piece)
    parser.close()
    assert not parser.open
    assert 'http' not in piece
    return re.sub('<[^>]+>', ' ', piece)


def test_pieces_of_the_page(evit, leaf):
    found = predict(evit, evit.prepare(leaf))
    shown = text_of(pieces.survivors(found))
    assert re.findall(r'(\d+) tokens', shown) == ['18', '11', '7']
    assert 'After step 2' in shown
    assert 'kept: as photographed' in shown
    assert 'blended faintly' in shown
    assert 'one colour per group' not in shown  # EViT does not
    shown = text_of(pieces.classes(found.answer, found.classes))
    assert all(name in shown for name in CLASSES)
    shown = text_of(pieces.compared(Speed(1, 9.5), Speed(2, 12), 'EViT, 0.5'))
    assert '1.000 GMACs' in shown
    assert '12.0 ms' in shown
    assert strings.NOT_FASTER not in shown
    slow = pieces.compared(Speed(1, 13), Speed(2, 12), 'EViT, 0.5')
    assert strings.NOT_FASTER in slow


def test_swatches_are_those_of_the_pictures(evit, leaf):
    drawn = pieces.survivors(predict(evit, evit.prepare(leaf)))
    kept, fused = re.findall(
        'background:(.+?);border-color:(.+?)"></span>(?:kept|blended)', drawn
    )
    assert (kept[0], fused[1]) == ('white', '#00000000')
    red, green, blue = map(int, re.findall(r'\d+', fused[0]))
    assert red < green < blue
    assert kept[1] != 'transparent'


def test_model_is_named():
    shown = text_of(pieces.note(strings.about_model('<a>.pth', CLASSES)))
    assert '&lt;a&gt;.pth knows 4 classes: ash, beech, elm, oak' in shown
    many = strings.about_model('', [f'c{n}' for n in range(80)])
    assert many == 'This model knows 80 classes: c0, c1, c2, c3, c4, c5, ...'


def test_names_of_classes_are_text_and_nothing_else():
    best = [dict(name='<script>alert(1)</script> & "x"', score=1.0)]
    drawn = pieces.classes([best[0]['name'], 1.0, '', ''], best)
    assert '<script>' not in drawn
    assert '&lt;script&gt;' in drawn


def test_keep_rate_is_explained(tmp_path):
    methods = methods_of(write_tiny(tmp_path, **EVIT))
    own, other = map(strings.about_keep_rate, list(methods.values())[:2])
    assert 'at each step, 2 times in all' in own
    assert own.endswith('Trained with 0.5.')
    assert 'Trained' not in other


def test_fixed_keep_rate_is_explained(tmp_path):
    methods = methods_of(write_tiny(tmp_path, **SIT))
    about = strings.about_keep_rate(methods['SiT'])
    assert about.endswith('0.5 and work with no other.')
    assert strings.method_label(methods['SiT']).endswith('(trained with it)')


def test_uploads_are_answered(tmp_path, leaf):
    pytest.importorskip('gradio', reason='extra demo: pip install gradio')
    from mmclca.page.callbacks import Callbacks

    callbacks = Callbacks(inferencer(tmp_path, **SIT), tmp_path)
    Image.fromarray(leaf).resize((2000, 1000)).save(tmp_path / 'leaf.png')
    shown, packed, problem = callbacks.read_upload(
        dict(path=tmp_path / 'leaf.png')
    )
    assert shown.shape == (512, 1024, 3)
    assert not problem.visible
    classes, survivors, costs, gmacs = callbacks.predict(packed, 'SiT', 0.5)
    assert all(name in classes for name in CLASSES)
    assert strings.MEASURING in costs
    assert gmacs > 0
    assert 'SiT, keep rate 0.5' in callbacks.measure(packed, 'SiT', 0.5, gmacs)
    slider = callbacks.select_method('SiT')
    assert (slider.value, slider.interactive) == (0.5, False)
    assert callbacks.select_method('TopK').interactive

    (tmp_path / 'bad.png').write_text('<b>no</b>')
    shown, packed, problem = callbacks.read_upload(
        dict(path=tmp_path / 'bad.png')
    )
    assert (shown, packed, problem.visible) == (None, None, True)
    assert 'cannot be read (no image' in problem.value
    assert callbacks.predict(packed, 'SiT', 0.5) == (
        *pieces.nothing_yet(),
        None,
    )
    assert (
        callbacks.measure(packed, 'SiT', 0.5, None) == pieces.nothing_yet()[-1]
    )


def test_only_what_was_uploaded_is_read(evit, tmp_path, leaf):
    pytest.importorskip('gradio', reason='extra demo: pip install gradio')
    from mmclca.page.callbacks import Callbacks

    callbacks = Callbacks(evit, tmp_path / 'uploads')
    (tmp_path / 'uploads').mkdir()
    Image.fromarray(leaf).save(tmp_path / 'mine.png')
    (tmp_path / 'uploads/link.png').symlink_to(tmp_path / 'mine.png')
    for place in ('mine.png', 'uploads/../mine.png', 'uploads/link.png'):
        shown, packed, problem = callbacks.read_upload(
            dict(path=tmp_path / place)
        )
        assert shown is packed is None
        assert 'not sent to this page' in problem.value
    (tmp_path / 'mine.png').rename(tmp_path / 'uploads/sent.png')
    sent = dict(path=tmp_path / 'uploads/sent.png')
    assert callbacks.read_upload(sent)[0].shape == (32, 32, 3)
