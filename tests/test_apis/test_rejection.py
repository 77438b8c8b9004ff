# Copyright (c) mmclca contributors. Licensed under Apache-2.0.

import pytest
import torch
from mmpretrain import get_model
from tiny_model import write_tiny

from mmclca.apis import TokenReductionInferencer
from mmclca.evaluation.open_set import (
    SCORES,
    fingerprint,
    read_threshold,
    write_threshold,
)


@pytest.fixture(scope='module')
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp('tiny')
    torch.manual_seed(0)
    write_tiny(folder)
    return folder


@pytest.fixture(scope='module')
def plain(folder):
    """Does not tell what is known."""
    return TokenReductionInferencer(folder / 'tiny.pth', device='cpu')


@pytest.fixture
def images(folder):
    return sorted(map(str, (folder / 'data').rglob('*.png')))


def known_scores(plain, images, score):
    inputs = [plain.prepare(image)['inputs'] for image in images]
    data = plain.model.data_preprocessor(dict(inputs=inputs))
    with torch.no_grad():
        return SCORES[score](plain.model(data['inputs']))


@pytest.fixture(params=SCORES)
def rejecting(request, folder, plain, images, tmp_path):
    """One that takes half of the images as unknown; their scores."""
    scores = known_scores(plain, images, request.param)
    middle = float(scores.sort().values[7:9].mean())
    found = plain.model, request.param, middle
    write_threshold(tmp_path / 'new/t.json', *found, accept=0.5)
    inferencer = TokenReductionInferencer(
        folder / 'tiny.pth', device='cpu', reject=tmp_path / 'new/t.json'
    )
    return inferencer, scores, middle


@pytest.mark.parametrize('tokens', [False, True])
def test_half_of_the_images_are_unknown(rejecting, plain, images, tokens):
    inferencer, scores, threshold = rejecting
    found = inferencer(images, batch_size=3, return_tokens=tokens)
    before = plain(images)
    assert [one['known'] for one in found].count(False) == 8
    for one, old, score in zip(found, before, scores, strict=True):
        assert one['known_score'] == pytest.approx(score.item(), abs=1e-5)
        assert one['known'] == bool(score >= threshold)
        assert one['pred_class'] == old['pred_class']
        assert one['pred_label'] == old['pred_label']
        assert one['pred_scores'] == pytest.approx(old['pred_scores'])
        assert ('tokens' in one) == tokens
        assert old['known'] is old['known_score'] is None


def changed_bias(model):
    model.head.fc.bias.data[0] += 1e-3


def changed_rate(model):
    model._config.model.backbone.reducer.keep_rate = 0.4


def changed_size(model):
    model._config.test_dataloader.dataset.pipeline[1].scale = (24, 24)


def changed_mean(model):
    model._config.model.data_preprocessor.mean = [0.0, 0.0, 0.0]


@pytest.mark.parametrize(
    'change', [changed_bias, changed_rate, changed_size, changed_mean]
)
def test_fingerprint_is_of_weights_settings_and_pixels(folder, plain, change):
    mark = fingerprint(plain.model)
    same = TokenReductionInferencer(folder / 'tiny.safetensors', device='cpu')
    assert fingerprint(same.model) == mark
    config = str(folder / 'tiny.py')
    built = get_model(config, pretrained=str(folder / 'tiny.pth'))
    assert fingerprint(built) == mark
    change(built)
    assert fingerprint(built) != mark


@pytest.mark.parametrize(
    'text, message',
    [
        ('{', 'lacks score, threshold, model'),
        ('[1]', 'tools/open_set.py'),
        ('{"score": "energy", "threshold": 1}', "KeyError: 'model'"),
        (
            '{"score": "odin", "threshold": 1, "model": "f"}',
            "no 'odin'; choose from max_softmax, energy, nearest",
        ),
        (
            '{"score": "energy", "threshold": "high", "model": "f"}',
            "threshold='high'",
        ),
        ('{"score": "energy", "threshold": NaN, "model": "f"}', 'not finite'),
    ],
)
def test_broken_files(text, message, plain, tmp_path):
    (tmp_path / 't.json').write_text(text)
    with pytest.raises(ValueError, match=message):
        read_threshold(tmp_path / 't.json', plain.model)


def test_a_score_that_the_model_does_not_give(plain, tmp_path):
    write_threshold(tmp_path / 't.json', plain.model, 'nearest', 0.9)
    with pytest.raises(ValueError, match="no 'nearest'; choose from max_soft"):
        read_threshold(tmp_path / 't.json', plain.model)


def test_no_file(plain, tmp_path):
    with pytest.raises(FileNotFoundError, match='tools/open_set.py'):
        read_threshold(tmp_path / 't.json', plain.model)
