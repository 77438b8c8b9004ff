# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from unittest.mock import Mock

import cv2
import numpy as np
import pytest
import torch
from mmengine.config import Config
from mmengine.dataset import Compose
from mmpretrain import get_model
from numpy.testing import assert_allclose
from PIL import Image
from tiny_model import write_tiny
from tiny_run import CLASSES

from mmclca.apis import TokenReductionInferencer, load_classifier
from mmclca.apis.token_statistics import attribute, paint_attention
from mmclca.evaluation.cost import count
from mmclca.models.recording import recording_copy
from mmclca.models.reduction.trace import patch_weights
from mmclca.registry import TRANSFORMS

METHODS = dict(
    EVIT=dict(reducer=dict(type='mmclca.EViT', keep_rate=0.5)),
    TOME=dict(
        reducer=dict(type='mmclca.ToMe', keep_rate=0.6), reduce_at=(0, 1, 2)
    ),
    ATS=dict(reducer=dict(type='mmclca.ATS', keep_rate=0.7), reduce_at=(0, 1)),
    PLAIN=dict(reducer=None, reduce_at=(), cache=None),
)


@pytest.fixture(scope='module', params=METHODS)
def model(tmp_path_factory, request):
    torch.manual_seed(0)
    folder = tmp_path_factory.mktemp(request.param)
    return write_tiny(folder, **METHODS[request.param])


@pytest.fixture(scope='module')
def images():
    rng = np.random.default_rng(0)
    shade = np.linspace(0, 155, 32)[:, None, None]
    noise = rng.integers(0, 100, (5, 32, 32, 3))
    return [*(noise + shade).astype(np.uint8)]


@pytest.fixture(scope='module')
def results(model, images):
    return TokenReductionInferencer(model)(images, return_tokens=True)


def batch(model, images):
    """Preprocess images by hand."""
    x = torch.tensor(np.stack(images)).permute(0, 3, 1, 2)
    return (x - 127.5) / 127.5


def slow_attention(model, images):
    """Attention of CLS in the last layer (B, N), and the token trace."""
    backbone = model.backbone
    tokens, _ = backbone.embed(batch(model, images))
    cached, last = [], backbone.num_layers - 1
    for i in range(last):
        stage = backbone.stage_of.get(i)
        tokens = backbone.run_layer(backbone.layers[i], tokens, stage)
        if backbone.cache is not None:
            tokens = backbone.cache(i, tokens, cached)
    if last in backbone.stage_of:
        tokens = backbone.reducer.before_layer(tokens, backbone.stage_of[last])
    layer = backbone.layers[last]
    B, N, C = tokens.features.shape
    H = layer.attn.num_heads
    qkv = layer.attn.qkv(layer.ln1(tokens.features)).reshape(
        B, N, 3, H, C // H
    )
    total = torch.zeros(B, N)
    for h in range(H):
        for b in range(B):
            keys = qkv[b, :, 1, h]
            logits = keys @ qkv[b, 0, 0, h] / (C // H) ** 0.5
            if type(backbone.reducer).__name__ in ('ATS', 'ToMe'):
                logits = logits + tokens.weights[b].log()
            total[b] += logits.softmax(0) / H
    return total, tokens.trace


@torch.no_grad()
def test_attention_maps_equal_a_slow_loop(model, images, results):
    attention, trace = slow_attention(model, images)
    weights = patch_weights(trace, len(images), 16)
    expected = attribute(attention, weights).view(-1, 4, 4)
    painted = paint_attention(attention, weights).view(-1, 4, 4)
    for one, spread, row in zip(results, expected, painted, strict=True):
        assert_allclose(one['attribution'], spread, atol=1e-5)
        assert_allclose(one['cls_attention'], row, atol=1e-5)
        assert one['attribution'].sum() == pytest.approx(1, abs=1e-5)
        assert one['cls_attention'].max() < 1


# the next test is for ATS, where token counts differ between images
@pytest.mark.parametrize('model', sorted({*METHODS} - {'ATS'}), indirect=True)
def test_tokens_and_gmacs_equal_the_cost_counter(model, images):
    inferencer = TokenReductionInferencer(model)
    cost = count(model)
    for result in inferencer(images[:2], return_tokens=True):
        assert result['tokens'] == cost.tokens
        assert result['gmacs'] == cost.flops / 1e9
    assert len(inferencer._macs.counted) == 1  # counted once


@torch.no_grad()
@pytest.mark.parametrize('model', ['ATS'], indirect=True)
def test_tokens_and_gmacs_are_counted_per_image(model, images, results):
    assert len({tuple(result['tokens']) for result in results}) > 1
    C, hidden, classes = 24, 48, 4
    for image, result in zip(images, results, strict=True):
        copied = recording_copy(model)
        copied.backbone.forward_tokens(batch(model, [image]))
        layers = copied.backbone.recorder.layers
        entered = [seen.entered.features.size(1) for seen in layers]
        left = [seen.left.features.size(1) for seen in layers]
        assert result['tokens'] == left
        macs = 16 * (8 * 8 * 3) * C + classes * C  # patches, head
        macs += left[-1] * C  # final norm
        for stage, (N, M) in enumerate(zip(entered, left, strict=True)):
            macs += N * C + 4 * N * C * C + 2 * N * N * C  # attention
            macs += M * C + 2 * M * C * hidden  # FFN
            macs += N * C * (stage < 2)  # CLS attention row
        assert result['gmacs'] == macs / 1e9


@torch.no_grad()
def test_results_do_not_depend_on_the_batch(model, images, results):
    inferencer = TokenReductionInferencer(model, classes=CLASSES)
    alone = inferencer(images, batch_size=1, return_tokens=True)
    plain = inferencer(images, batch_size=2)
    expected = model(batch(model, images)).softmax(-1).numpy()
    rows = zip(results, alone, plain, expected, strict=True)
    for number, (a, b, c, scores) in enumerate(rows):
        assert list(a) == list(b)
        assert a['image'] == b['image'] == c['image'] == number
        assert a['tokens'] == b['tokens'] and a['gmacs'] == b['gmacs']
        for name in ('kept', 'attribution', 'cls_attention'):
            assert_allclose(a[name], b[name], atol=1e-5)
        for one in (a, b, c):
            assert_allclose(one['pred_scores'], scores, atol=1e-5)
        assert 'tokens' not in c
        assert c['pred_label'] == scores.argmax()
        assert c['pred_score'] == pytest.approx(scores.max(), abs=1e-5)
        assert c['pred_class'] == CLASSES[scores.argmax()]


def test_attribution_splits_attention_by_patch_weights():
    # CLS, one patch, a merged token, a cached token; patch 3 is dropped
    weights = torch.zeros(1, 4, 4)
    weights[0, 1, 0] = 1
    weights[0, 2, 1:3] = torch.tensor([0.1, 0.3])
    attention = torch.tensor([[0.1, 0.2, 0.4, 0.3]])
    expected = torch.tensor([[0.2, 0.1, 0.3, 0.0]]) / 0.6
    torch.testing.assert_close(attribute(attention, weights), expected)
    painted = torch.tensor([[0.2, 0.4, 0.4, 0.0]])
    torch.testing.assert_close(paint_attention(attention, weights), painted)
    assert not attribute(attention, torch.zeros(1, 4, 4)).any()


def test_every_form_of_a_model_gives_equal_scores(folder):
    config, checkpoint = str(folder / 'tiny.py'), folder / 'tiny.pth'
    forms = [
        (checkpoint,),
        (str(folder / 'tiny.safetensors'),),
        (config, folder / 'tiny.safetensors'),
        (Config.fromfile(config), str(checkpoint)),
        (get_model(config, pretrained=str(checkpoint)),),
        (get_model(config), str(checkpoint)),
    ]
    answers = []
    for form in forms:
        inferencer = TokenReductionInferencer(*form, device='cpu')
        assert list(inferencer.classes) == list(CLASSES)
        answers.append(inferencer(folder / 'data', batch_size=5))
    paths = sorted(map(str, (folder / 'data').rglob('*.png')))
    for answer in answers:
        assert [one['image'] for one in answer] == paths
        for one, first in zip(answer, answers[0], strict=True):
            assert (one['pred_scores'] == first['pred_scores']).all()


def test_config_name_selects_the_model(tmp_path):
    name = 'clca-evit-kr50_vit-mini-p14_1xb32-24e_synthetic-leaves-112px'
    model = get_model(name)
    torch.save(model.state_dict(), tmp_path / 'mini.pth')
    image = np.full((150, 100, 3), 90, np.uint8)
    by_name = TokenReductionInferencer(name, tmp_path / 'mini.pth')
    (one,) = by_name(image)
    (other,) = TokenReductionInferencer(model)(image)
    assert (one['pred_scores'] == other['pred_scores']).all()
    with pytest.raises(ValueError, match='weights'):
        TokenReductionInferencer(name)
    with pytest.raises(FileNotFoundError, match='clca-evit'):
        TokenReductionInferencer(name + 'x', tmp_path / 'mini.pth')


def test_unreadable_images_are_reported_in_order(folder, inferencer, tmp_path):
    good = folder / 'data/oak/0.png'
    Image.open(good).save(tmp_path / 'cut.png')
    cut = (tmp_path / 'cut.png').read_bytes()
    (tmp_path / 'cut.png').write_bytes(cut[: len(cut) // 2])
    (tmp_path / 'text.jpg').write_text('no image')
    odd = np.zeros((4, 4), np.float32)
    inputs = [good, tmp_path, odd, 'gone.png', str(folder / 'data/oak/1.png')]
    with pytest.warns(UserWarning, match='(?s)cut.png.*text'):
        results = inferencer(inputs, batch_size=2, return_tokens=True)
    places = [good, tmp_path / 'cut.png', tmp_path / 'text.jpg']
    names = [*map(str, places), 3, 'gone.png', inputs[-1]]
    assert [result['image'] for result in results] == names
    errors = [result.get('error') for result in results]
    assert errors[0] is None and errors[5] is None
    assert 'not an image' in errors[2] and 'no such file' in errors[4]
    assert 'float32' in errors[3]
    assert all(len(results[i]) == 2 for i in range(1, 5))
    (alone,) = inferencer(inputs[-1])
    assert_allclose(results[5]['pred_scores'], alone['pred_scores'], atol=1e-6)
    with pytest.warns(UserWarning, match='unreadable'):
        samples = inferencer([odd, good], return_datasamples=True)
    assert 'error' in samples[0] and samples[1].pred_score.shape == (4,)


def test_pipeline_errors_are_reported_per_image(inferencer, monkeypatch):
    prepare = inferencer.pipeline.pipeline

    def fails_at_a_strip(info):
        if info['img_shape'][0] == 1:
            raise cv2.error('too wide')
        return prepare(info)

    monkeypatch.setattr(inferencer.pipeline, 'pipeline', fails_at_a_strip)
    good = np.full((40, 40, 3), 90, np.uint8)
    with pytest.warns(UserWarning, match='1 x 3000 px'):
        results = inferencer([good, np.zeros((1, 3000, 3), np.uint8), good])
    assert 'too wide' in results[1]['error']
    assert results[0]['pred_label'] == results[2]['pred_label']


def test_prepare_equals_the_pipeline(folder, tmp_path):
    noise = np.random.default_rng(0).integers(0, 255, (32, 32, 4), np.uint8)
    Image.fromarray(noise).save(tmp_path / 'cut out.png')
    config = Config.fromfile(folder / 'tiny.py')
    dataset = config.test_dataloader.dataset
    load = dict(type='LoadImageFromFile')
    photo = dict(type='mmclca.LoadPhoto')
    cached = dict(type='mmclca.CacheImages', transforms=[photo])
    for first in (load, photo, cached):
        dataset.pipeline[0] = first
        steps = Compose([TRANSFORMS.build(one) for one in dataset.pipeline])
        expected = steps(dict(img_path=str(tmp_path / 'cut out.png')))
        model = TokenReductionInferencer(config, folder / 'tiny.pth', 'cpu')
        found = model.prepare(str(tmp_path / 'cut out.png'))
        assert (found['inputs'] == expected['inputs']).all()


def test_stream_yields_results_per_batch(folder, inferencer, monkeypatch):
    bar = Mock(side_effect=lambda batches, description: batches)
    monkeypatch.setattr('mmclca.apis.inferencer.track', bar)
    stream = inferencer.stream(folder / 'data', batch_size=3)
    first = [next(stream) for _ in range(4)]
    assert [r['pred_class'] in CLASSES for r in first] == [True] * 4
    assert len([*stream]) == 12
    assert len(bar.call_args.args[0]) == 6  # batches


def test_show_dir_writes_pictures(folder, inferencer, tmp_path):
    image = folder / 'data/oak/2.png'
    inferencer(image, show_dir=tmp_path / 'shown')
    assert (tmp_path / 'shown/2.png').is_file()


@pytest.mark.parametrize(
    'given, options, term',
    [
        (('tiny.pth', 'tiny.safetensors'), {}, 'both checkpoints'),
        (('tiny.pth',), dict(classes=['a', 'b']), 'classes='),
        ((Config({}), 'tiny.pth'), {}, 'test_dataloader'),
        (
            ('tiny.py', 'tiny.pth'),
            dict(options={'model.head.num_classes': 6}),
            '2 parameters',
        ),
    ],
)
def test_inferencer_refuses_invalid_models(folder, given, options, term):
    given = [folder / x if isinstance(x, str) else x for x in given]
    with pytest.raises(ValueError, match=term):
        TokenReductionInferencer(*given, **options)


def test_options_change_a_copy_of_the_config(folder):
    config = Config.fromfile(folder / 'tiny.py')
    options = {'model.backbone.reducer.keep_rate': 0.9}
    loaded = load_classifier(config, folder / 'tiny.pth', options)
    assert loaded.backbone.reducer.keep_rates == (0.9,)
    assert config.model.backbone.reducer.keep_rate == 0.5


def test_inferencer_refuses_invalid_calls(folder, images):
    inferencer = TokenReductionInferencer(folder / 'tiny.pth', device='cpu')
    with pytest.raises(ValueError, match='batch_size=0'):
        inferencer(images, batch_size=0)
    with pytest.raises(ValueError, match='return_token'):
        inferencer(images, return_token=True)
    del inferencer.model._config
    with pytest.raises(ValueError, match='config'):
        TokenReductionInferencer(inferencer.model)
