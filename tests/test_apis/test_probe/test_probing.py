# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import pytest
import torch
from mmengine.config import Config
from mmpretrain import get_model
from safetensors.torch import save_file
from small_models import arch
from tiny_run import CLASSES

from mmclca.apis import Probe, TokenReductionInferencer, find_images
from mmclca.apis.features import FeatureCache, extract_features
from mmclca.apis.probe import LabeledFeatures, fit_linear
from mmclca.models import with_layer_fusion, with_reduction

LABELS = [label for label in range(4) for _ in range(4)]


@pytest.fixture(scope='module')
def paths(folder):
    return find_images([folder / 'data'])


@pytest.fixture
def probe(folder):
    return Probe(folder / 'tiny.pth')


@pytest.fixture(scope='module')
def features(folder, paths):
    return Probe(folder / 'tiny.pth').features(paths)[0]


def changed(folder, **model):
    """Config of the folder with changed parts in the model."""
    cfg = Config.fromfile(folder / 'tiny.py')
    cfg.model = dict(cfg.model, **model)
    return cfg


def weights_for(cfg, path):
    """Write random weights for a config as a state dict."""
    model = get_model(cfg, pretrained=False)
    for parameter in model.parameters():
        parameter.data.add_(0.1 * torch.randn_like(parameter))
    torch.save(model.state_dict(), path)
    return path


def test_features_are_the_inputs_of_the_last_layer(probe, inferencer, paths):
    found, unread = probe.features(paths)
    expected, _ = extract_features(inferencer, paths)
    assert torch.equal(found, expected) and unread == {}


def test_saved_probe_predicts_like_the_classifier(
    probe, features, paths, tmp_path
):
    found = probe.fit(features, LABELS, CLASSES)
    data = LabeledFeatures(features, LABELS, 4)
    fitted = fit_linear(data, setting=found.setting)
    expected = (fitted.scores(features) / found.temperature).softmax(1)
    assert torch.allclose(probe.scores(features).softmax(1), expected)
    probe.save(tmp_path / 'new/probe.pth')
    saved = TokenReductionInferencer(tmp_path / 'new/probe.pth')
    for inferencer in (saved, TokenReductionInferencer(probe.model)):
        results = inferencer(paths)
        scores = torch.tensor([result['pred_scores'] for result in results])
        assert torch.allclose(scores, expected.to(scores), atol=1e-4)
        assert {result['pred_class'] for result in results} <= {*CLASSES}


def test_fit_changes_the_number_of_classes(probe, features, tmp_path):
    probe.fit(features[:8], LABELS[:8], ['ash', 'beech'])
    probe.save(tmp_path / 'two.pth')
    again = Probe(tmp_path / 'two.pth')
    assert again.classes == ['ash', 'beech']
    again.fit(features[:12], LABELS[:12], ['ash', 'beech', 'elm'])
    assert again.model.head.fc.weight.shape == (3, 24)
    assert again.model._config.data_preprocessor.num_classes == 3
    assert len(TokenReductionInferencer(again.model).classes) == 3


def test_features_skip_unreadable_images(folder, paths, features, tmp_path):
    broken = tmp_path / 'broken.png'
    broken.write_bytes(b'no image')
    probe = Probe(folder / 'tiny.pth', batch_size=2)
    given = [paths[0], broken, paths[1], tmp_path / 'gone.png', paths[2]]
    found, unread = probe.features(given)
    assert list(unread) == [1, 3] and 'no such file' in unread[3]
    assert torch.allclose(found, features[:3], atol=1e-5)
    with pytest.raises(ValueError, match='none of 1'):
        probe.features([broken])


def cached(checkpoint, features_dir):
    """Probe whose backbone fails if it is called."""
    probe = Probe(checkpoint, features_dir=features_dir)
    probe.model.backbone.forward_tokens = None
    return probe


def test_feature_cache_is_shared_between_probes(folder, paths, tmp_path):
    first = Probe(folder / 'tiny.pth', features_dir=tmp_path / 'kept')
    expected, _ = first.features(paths)
    first.fit(expected[:8], LABELS[:8], ['ash', 'beech'])
    first.save(tmp_path / 'two.pth')
    for checkpoint in (folder / 'tiny.pth', tmp_path / 'two.pth'):
        found, _ = cached(checkpoint, tmp_path / 'kept').features(paths)
        assert torch.equal(found, expected)


def test_feature_cache_depends_on_model_settings(folder, paths, tmp_path):
    Probe(folder / 'tiny.pth', features_dir=tmp_path).features(paths[:1])
    rate = changed(folder)
    rate.model = with_reduction(rate.model, 'TopK', 0.3)
    brighter = changed(folder)
    brighter.data_preprocessor.mean = [100.0] * 3
    for number, cfg in enumerate((rate, brighter), start=2):
        probe = Probe(cfg, folder / 'tiny.pth', features_dir=tmp_path)
        probe.features(paths[:1])
        assert len(list(tmp_path.iterdir())) == number


def test_interrupted_extraction_resumes(folder, paths, features, tmp_path):
    probe = Probe(folder / 'tiny.pth', features_dir=tmp_path, batch_size=2)
    run, passes = probe.model.extract_feat, []

    def interrupt(*given, **options):
        passes.append(1)
        if len(passes) == 4:
            raise KeyboardInterrupt
        return run(*given, **options)

    probe.model.extract_feat = interrupt
    with pytest.raises(KeyboardInterrupt):
        probe.features(paths)
    _, _, part = tmp_path.glob('*/*.safetensors')
    found, _ = cached(folder / 'tiny.pth', tmp_path).features(paths[:6])
    assert torch.allclose(found, features[:6], atol=1e-5)
    part.write_bytes(part.read_bytes()[:-9])  # cut short
    whole = Probe(folder / 'tiny.pth', features_dir=tmp_path).features(paths)
    assert whole[0].shape == (16, 24)


@pytest.mark.parametrize(
    'content, digests',
    [
        (torch.ones(1, 24, dtype=torch.int32), '["a"]'),
        (torch.ones(1, 24).to(torch.float8_e5m2), '["a"]'),
        (torch.ones(1, 23), '["a"]'),
        (torch.ones(1, 24), '[1]'),
        (torch.ones(1, 24), '[' * 100_000),
        (torch.ones(1, 24), '{'),
    ],
)
def test_cached_features_are_ignored_if_damaged(content, digests, tmp_path):
    part = tmp_path / 'model/part.safetensors'
    part.parent.mkdir()
    save_file(dict(features=content), part, dict(digests=digests))
    assert not FeatureCache(tmp_path, 'model', 24)
    save_file(dict(features=torch.ones(1, 24)), part, dict(digests='["a"]'))
    assert FeatureCache(tmp_path, 'model', 24)['a'].sum() == 24


RESNET = dict(
    backbone=dict(type='ResNet', depth=18, stem_channels=8, base_channels=8),
    neck=dict(type='GlobalAveragePooling'),
    head=dict(type='LinearClsHead', num_classes=9, in_channels=64),
)
VIT = dict(type='VisionTransformer', arch=arch(2), img_size=32, patch_size=8)
MLP_HEAD = dict(
    type='VisionTransformerClsHead',
    num_classes=9,
    in_channels=16,
    hidden_dim=12,
)


@pytest.mark.parametrize(
    'parts, clca, channels',
    [
        (RESNET, False, 64),
        (dict(backbone=dict(VIT, out_type='avg_featmap'), head=MLP_HEAD),
         False, 12),
        ({}, True, 48),
    ],
)  # fmt: skip
def test_probe_fits_other_backbones(
    folder, paths, tmp_path, parts, clca, channels
):
    cfg = changed(folder, **parts)
    if clca:
        cfg.model = with_reduction(
            cfg.model, 'EViT', 0.5, cache=True, cla=True
        )
    probe = Probe(cfg, weights_for(cfg, tmp_path / 'w.pth'))
    features, _ = probe.features(paths)
    assert features.shape == (16, channels)
    found = probe.fit(features, LABELS, CLASSES)
    assert found.accuracy.mean() > 0.5  # brightness grows with the label
    probe.save(tmp_path / 'probe.pth')
    results = TokenReductionInferencer(tmp_path / 'probe.pth')(paths)
    named = torch.tensor([result['pred_label'] for result in results])
    assert (named == torch.tensor(LABELS)).sum() > 10


def test_probe_reads_layers_of_a_headless_checkpoint(folder, paths, tmp_path):
    cfg = changed(folder)
    cfg.model = with_layer_fusion(cfg.model, (0, 1), 'cls_average')
    state = torch.load(folder / 'tiny.pth')['state_dict']
    state = {k: v for k, v in state.items() if 'head' not in k}
    torch.save(state, tmp_path / 'backbone.pth')
    cfg.load_from = str(tmp_path / 'backbone.pth')
    probe = Probe(cfg)
    features, _ = probe.features(paths)
    assert features.shape == (16, 2 * 2 * 24)
    probe.fit(features, LABELS, CLASSES)
    probe.save(tmp_path / 'probe.pth')
    assert len(TokenReductionInferencer(tmp_path / 'probe.pth')(paths)) == 16


def test_probe_refuses_invalid_models_and_classes(folder, probe):
    with pytest.raises(ValueError, match='weights'):
        Probe(folder / 'tiny.py')
    cfg = changed(folder)
    cfg.model = with_reduction(cfg.model, 'EViT', 0.5, cla=True)
    with pytest.raises(ValueError, match='head.layers'):
        Probe(cfg, folder / 'tiny.pth')
    sizes = dict(num_classes=4, in_channels=24, mid_channels=[8])
    cfg = changed(folder, head=dict(type='StackedLinearClsHead', **sizes))
    with pytest.raises(ValueError, match='closed form'):
        Probe(cfg, folder / 'tiny.pth')
    with pytest.raises(ValueError, match='found 1'):
        probe.fit(torch.ones(2, 24), [0, 0], ['ash'])
