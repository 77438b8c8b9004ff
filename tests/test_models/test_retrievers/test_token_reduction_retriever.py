# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import pytest
import torch
from mmengine.config import Config
from mmengine.registry import DefaultScope
from mmengine.runner import Runner
from mmpretrain import ImageRetrievalInferencer
from tiny_model import tiny_folder
from tiny_run import CLASSES

from mmclca.checkpoints.load import load
from mmclca.evaluation.retrieval import measure_queries
from mmclca.models.retrievers import cosine_similarity
from mmclca.registry import MODELS

folder = tiny_folder
CLA = dict(out_indices=(1, 2), final_norm=False)
HEAD = dict(type='mmclca.CLAHead', num_classes=4, in_channels=24, num_layers=2)


@pytest.fixture(autouse=True)
def scope():
    with DefaultScope.overwrite_default_scope('mmpretrain'):
        yield


def loader(folder, **options):
    given = Config.fromfile(folder / 'tiny.py').test_dataloader.to_dict()
    given.update(batch_size=5, collate_fn=dict(type='default_collate'))
    given['sampler']['shuffle'] = False
    given['dataset'].update(options)
    return given


def config_of(folder, **options):
    """Retriever config with the tiny classifier."""
    cfg = Config.fromfile(folder / 'tiny.py')
    cfg.model = dict(
        type='mmclca.TokenReductionRetriever',
        image_encoder=cfg.model.to_dict(),
        prototype=loader(folder),
        **options,
    )
    cfg.test_dataloader = loader(folder)
    cfg.test_evaluator = dict(type='mmclca.RetrievalMetric', topk=(1, 5))
    cfg.work_dir = str(folder / 'work')
    return cfg


@pytest.fixture
def runner(folder):
    cfg = config_of(folder)
    cfg.load_from = str(folder / 'tiny.pth')
    cfg.experiment_name = 'retrieval'
    return Runner.from_cfg(cfg)


def features_by_hand(model, dataset):
    """Input features of the last linear layer, image by image."""
    features = []
    for i in range(len(dataset)):
        data = dict(inputs=[dataset[i]['inputs']])
        data = model.data_preprocessor(data)
        (feature,) = model.image_encoder.head.pre_logits(
            model.image_encoder.backbone(data['inputs'])
        )
        features.append(feature.detach())
    return torch.stack(features)


def test_runner_excludes_query_from_results(runner):
    metrics = runner.test()
    dataset = runner.test_dataloader.dataset
    features = features_by_hand(runner.model, dataset)
    labels = torch.tensor(dataset.get_gt_labels())
    similarity = cosine_similarity(features, features)
    similarity.fill_diagonal_(-torch.inf)
    found = measure_queries(similarity, labels[:, None] == labels, ())
    expected = found['mAP'].mean().item() * 100
    assert metrics['retrieval/mAP'] == pytest.approx(expected, abs=1e-4)
    assert metrics['retrieval/unmatched'] == 0
    assert len(labels) == 16


def built(folder, **options):
    model = MODELS.build(config_of(folder, **options).model).eval()
    load(model, str(folder / 'tiny.pth'), strict=False)
    return model


def test_retriever_loads_classifier_and_own_weights(folder, tmp_path):
    model = built(folder)
    stored = torch.load(folder / 'tiny.pth', weights_only=False)['state_dict']
    loaded = model.image_encoder.state_dict()
    assert loaded.keys() == stored.keys()
    assert all(torch.equal(loaded[name], stored[name]) for name in stored)
    torch.save(model.state_dict(), tmp_path / 'own.pth')
    again = MODELS.build(config_of(folder).model)
    load(again, str(tmp_path / 'own.pth'))
    assert torch.equal(
        again.image_encoder.head.fc.weight, model.image_encoder.head.fc.weight
    )


def test_stage_selects_features(folder):
    cla = config_of(folder).model
    cla.image_encoder.backbone.update(CLA)
    cla.image_encoder.head = HEAD
    images = torch.randn(2, 3, 32, 32)
    model = MODELS.build(cla).eval()
    last = MODELS.build(dict(cla, feature='backbone')).eval()
    last.load_state_dict(model.state_dict())
    encoder = model.image_encoder
    outs = encoder.backbone(images)
    assert torch.equal(model(images), encoder.head.pre_logits(outs))
    assert model(images).shape == (2, 48)
    assert torch.equal(last(images), outs[-1])
    with pytest.raises(ValueError, match='feature'):
        MODELS.build(dict(cla, feature='neck'))


def test_prepare_prototype_uses_current_weights(folder):
    model = built(folder)
    images = torch.randn(1, 3, 32, 32)
    with torch.no_grad():
        before = model.predict(images)[0].pred_score
        model.image_encoder.backbone.cls_token.add_(1)
        model.prepare_prototype()
        after = model.predict(images)[0].pred_score
    assert len(before) == 16 and not torch.equal(before, after)


def test_inferencer_of_mmpretrain_ranks_unlabeled_gallery(folder):
    model = built(folder)
    model._config = config_of(folder)
    gallery = str(folder / 'data/oak')
    inferencer = ImageRetrievalInferencer(model, prototype=gallery)
    query = str(folder / 'data/oak/2.png')
    (found,) = inferencer(query, topk=2)
    assert found[0]['sample']['img_path'] == query
    assert found[0]['match_score'].item() == pytest.approx(1, abs=1e-5)
    assert found[1]['match_score'] < found[0]['match_score']


def test_invalid_gallery_is_refused(folder, tmp_path):
    model = built(folder)
    (tmp_path / 'none.txt').write_text('')
    model.prototype = loader(
        folder, ann_file=str(tmp_path / 'none.txt'), classes=CLASSES
    )
    with pytest.raises(ValueError, match='empty'):
        model.prepare_prototype()
    model.prototype = torch.full((2, 24), torch.nan)
    with pytest.raises(ValueError, match='2 of 2'):
        model.prepare_prototype()
    model.prototype = torch.ones(2, 7)
    model.prepare_prototype()
    with pytest.raises(ValueError, match='dimension 7'):
        model.predict(torch.randn(1, 3, 32, 32))


def test_cosine_similarity_equals_torch():
    ours, theirs = torch.randn(3, 5), torch.randn(4, 5)
    expected = torch.cosine_similarity(ours[:, None], theirs[None], dim=-1)
    assert torch.allclose(cosine_similarity(ours, theirs), expected)
