# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import pytest
import torch
from mmpretrain import get_model

from mmclca.apis import TokenReductionInferencer
from mmclca.evaluation.open_set import (
    SCORES,
    fingerprint,
    read_threshold,
    write_threshold,
)


@pytest.fixture
def images(folder):
    return sorted(map(str, (folder / 'data').rglob('*.png')))


@pytest.fixture(params=SCORES)
def rejecting(request, folder, inferencer, images, tmp_path):
    """Inferencer that flags half of the images, with scores and threshold."""
    inputs = [inferencer.prepare(image)['inputs'] for image in images]
    data = inferencer.model.data_preprocessor(dict(inputs=inputs))
    with torch.no_grad():
        scores = SCORES[request.param](inferencer.model(data['inputs']))
    middle = float(scores.sort().values[7:9].mean())
    path = tmp_path / 'new/t.json'
    write_threshold(path, inferencer.model, request.param, middle, accept=0.5)
    checkpoint = folder / 'tiny.pth'
    rejecting = TokenReductionInferencer(checkpoint, None, 'cpu', reject=path)
    return rejecting, scores, middle


@pytest.mark.parametrize('tokens', [False, True])
def test_inferencer_flags_images_below_the_threshold(
    rejecting, inferencer, images, tokens
):
    rejecting, scores, threshold = rejecting
    found = rejecting(images, batch_size=3, return_tokens=tokens)
    before = inferencer(images)
    assert [one['known'] for one in found].count(False) == 8
    for one, old, score in zip(found, before, scores, strict=True):
        assert one['known_score'] == pytest.approx(score.item(), abs=1e-5)
        assert one['known'] == bool(score >= threshold)
        assert one['pred_label'] == old['pred_label']
        assert one['pred_class'] == old['pred_class']
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
def test_fingerprint_covers_weights_and_settings(folder, inferencer, change):
    mark = fingerprint(inferencer.model)
    same = TokenReductionInferencer(folder / 'tiny.safetensors', device='cpu')
    assert fingerprint(same.model) == mark
    config = str(folder / 'tiny.py')
    built = get_model(config, pretrained=str(folder / 'tiny.pth'))
    assert fingerprint(built) == mark
    change(built)
    assert fingerprint(built) != mark


@pytest.mark.parametrize(
    'text, term',
    [
        ('{', 'threshold, model'),
        ('[1]', 'open_set.py'),
        ('{"score": "energy", "threshold": 1}', "'model'"),
        ('{"score": "odin", "threshold": 1, "model": "f"}', 'odin'),
        ('{"score": "energy", "threshold": "high", "model": "f"}', 'high'),
        ('{"score": "energy", "threshold": NaN, "model": "f"}', 'finite'),
        ('{"score": "energy", "threshold": 1, "model": "f"}', 'another model'),
    ],
)
def test_read_threshold_refuses_damaged_files(
    text, term, inferencer, tmp_path
):
    path = tmp_path / 't.json'
    with pytest.raises(FileNotFoundError, match='open_set.py'):
        read_threshold(path, inferencer.model)
    path.write_text(text)
    with pytest.raises(ValueError, match=term):
        read_threshold(path, inferencer.model)


def test_read_threshold_refuses_a_score_unsupported_by_the_head(
    inferencer, tmp_path
):
    write_threshold(tmp_path / 't.json', inferencer.model, 'nearest', 0.9)
    with pytest.raises(ValueError, match='nearest'):
        read_threshold(tmp_path / 't.json', inferencer.model)
