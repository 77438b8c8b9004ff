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
    rejecting = TokenReductionInferencer(
        checkpoint, None, 'cpu', threshold=path
    )
    return rejecting, scores, middle


def test_inferencer_flags_images_below_the_threshold(
    rejecting, inferencer, images
):
    rejecting, scores, threshold = rejecting
    found = rejecting(images, batch_size=3, return_tokens=True)
    assert [one['known'] for one in found].count(False) == 8
    results = found, rejecting(images), inferencer(images)
    for one, plain, old, score in zip(*results, scores, strict=True):
        assert one['known_score'] == pytest.approx(score.item(), abs=1e-5)
        assert one['known'] == plain['known'] == bool(score >= threshold)
        assert one['pred_class'] == old['pred_class']
        assert one['pred_scores'] == pytest.approx(old['pred_scores'])
        assert 'tokens' in one and 'tokens' not in plain
        assert old['known'] is old['known_score'] is None


def test_fingerprint_covers_weights_and_settings(folder, inferencer):
    mark = fingerprint(inferencer.model)
    same = TokenReductionInferencer(folder / 'tiny.safetensors', device='cpu')
    assert fingerprint(same.model) == mark
    config = str(folder / 'tiny.py')
    built = get_model(config, pretrained=str(folder / 'tiny.pth'))
    assert fingerprint(built) == mark
    own, test = built._config.model, built._config.test_dataloader.dataset
    changes = [
        (built.head.fc.bias, 'data', built.head.fc.bias.data + 1e-3),
        (own.backbone.reducer, 'keep_rate', 0.4),
        (test.pipeline[1], 'scale', (24, 24)),
        (own.data_preprocessor, 'mean', [0.0, 0.0, 0.0]),
    ]
    for place, name, value in changes:
        setattr(place, name, value)
        new = fingerprint(built)
        assert new != mark
        mark = new


@pytest.mark.parametrize(
    'text, term',
    [
        ('{', 'not JSON'),
        ('[1]', 'open_set.py'),
        ('{"score": "energy", "threshold": 1}', 'model is missing'),
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
    write_threshold(path, inferencer.model, 'nearest', 0.9)  # another head
    with pytest.raises(ValueError, match='nearest'):
        read_threshold(path, inferencer.model)
