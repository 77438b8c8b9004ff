# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Linear classifiers of releases, loaded by mmengine into any head."""

import pytest
import torch
from foreign_models import CLA_HEAD, HEAD, config, theirs
from mmengine.runner import load_checkpoint
from mmpretrain.models.heads import ClsHead

from mmclca.checkpoints.error import CheckpointError
from mmclca.checkpoints.load import load
from mmclca.models.heads import last_linear
from mmclca.registry import MODELS

LINEAR = dict(HEAD, type='LinearClsHead')
KINDS = ['mmclca.DistilledClassifier', 'mmclca.TokenReductionClassifier']
BACKBONES = ['TokenReductionViT', 'TransFG', 'FFVT']


def build(kind, head, **options):
    model = dict(config(), type=kind, head=head)
    return MODELS.build(dict(model, backbone=model['backbone'] | options))


def loaded(here, there, folder):
    """Last layer after loading the weights of another model by mmengine."""
    torch.save(there.state_dict(), folder / 'weights.pth')
    load_checkpoint(here, str(folder / 'weights.pth'))
    return last_linear(here.head)


@pytest.mark.parametrize('kind', [KINDS[0], 'ImageClassifier'])
@pytest.mark.parametrize('head', [HEAD, LINEAR])
@pytest.mark.parametrize('backbone', BACKBONES)
def test_classifier_loads_into_linear_heads(
    backbone, head, kind, tmp_path, log
):
    timm, options = theirs(), dict(type=f'mmclca.{backbone}')
    found = loaded(build(kind, head, **options), timm, tmp_path)
    assert torch.equal(found.weight, timm.head.weight.float())
    there = build(KINDS[0], HEAD, type='VisionTransformer')
    found = loaded(build(kind, head, **options), there, tmp_path)
    assert torch.equal(found.bias, there.head.layers.head.bias)
    assert not log


SIZE = dict(num_classes=5, in_channels=16)
# heads with one matrix from features to classes
MATRIX_HEADS = [
    HEAD,
    LINEAR,
    dict(SIZE, type='mmclca.NearestLinearHead', num_references=2),
    dict(SIZE, type='mmclca.LayerFusionHead', num_layers=1),
    dict(SIZE, type='EfficientFormerClsHead', distillation=False),
]


@pytest.mark.parametrize('head', MATRIX_HEADS)
@pytest.mark.parametrize('name', ['fc', 'layers.head', 'head'])
def test_classifier_loads_by_any_name_of_a_head(head, name):
    """As in releases of TransFG and FFVT, and in MMPretrain's files."""
    here = build(KINDS[0], head, out_indices=[-1])
    here.load_state_dict(here.state_dict())
    weight, bias = torch.rand(5, 16), torch.rand(5)
    weights = {f'head.{name}.weight': weight, f'head.{name}.bias': bias}
    missing, unused = here.load_state_dict(weights, strict=False)
    assert not any(x.startswith('head.') and 'ref' not in x for x in missing)
    assert not unused
    stored = [*here.head.state_dict().values()]
    assert any(torch.equal(x, weight) for x in stored if x.shape == (5, 16))
    assert any(torch.equal(x, bias) for x in stored if x.shape == (5,))


@pytest.mark.parametrize('hidden', [None, 16])
def test_classifier_is_refused_if_its_hidden_layer_has_no_place(hidden):
    there = build(KINDS[0], dict(HEAD, hidden_dim=16))
    here = build(KINDS[0], dict(HEAD, hidden_dim=hidden))
    if hidden:
        here.load_state_dict(there.state_dict())
    else:
        with pytest.raises(CheckpointError, match='hidden layer'):
            here.load_state_dict(there.state_dict(), strict=False)


@pytest.mark.parametrize('linear', [HEAD, LINEAR])
def test_plain_classifier_loads_the_head_of_a_release(linear):
    """MMPretrain's ImageClassifier shows it to no hook of its backbone."""
    here, timm = build('ImageClassifier', linear), theirs().state_dict()
    assert not here.load_state_dict(timm, strict=False).missing_keys
    head = here.head.fc if linear is LINEAR else here.head.layers.head
    assert torch.equal(head.bias, timm['head.bias'].float())
    timm = {k: x for k, x in timm.items() if not k.startswith('head.')}
    missing = here.load_state_dict(timm, strict=False).missing_keys
    assert missing and all(name.startswith('head.') for name in missing)


@pytest.mark.parametrize('shape', [(5, 16), (16, 16)])
def test_only_classifiers_count_as_unnamed(shape):
    """A hidden layer shaped like another matrix is no classifier."""
    here = build(KINDS[0], dict(HEAD, hidden_dim=16))
    weights = here.state_dict()
    for name in [name for name in weights if name.startswith('head.')]:
        del weights[name]
    weights['projector.weight'] = torch.rand(shape)
    if shape == (16, 16):
        report = load(here, weights, strict=False)
        assert report.unused == ['projector.weight']
        return
    with pytest.raises(CheckpointError, match='projector'):
        load(here, weights, strict=False)


@pytest.mark.parametrize('kind', [KINDS[0], 'ImageClassifier'])
@pytest.mark.parametrize('head', [HEAD, LINEAR])
@pytest.mark.parametrize('name', ['head.other', 'my_classifier'])
def test_fitting_classifier_with_unknown_name_is_refused(kind, head, name):
    here = build(kind, head)
    weights = {
        f'backbone.{k}': x for k, x in here.backbone.state_dict().items()
    }
    weights[f'{name}.weight'] = torch.rand(5, 16)
    with pytest.raises(CheckpointError, match=name):
        here.load_state_dict(weights, strict=False)


class OwnHead(ClsHead):
    """A user's head, with its own name for the classifier."""

    def __init__(self):
        super().__init__()
        self.num_classes = 5
        self.classifier = torch.nn.Linear(16, 5)


@pytest.mark.parametrize('kind', [KINDS[0], 'ImageClassifier'])
def test_own_head_does_not_stay_random(kind, tmp_path):
    """Unless the file has another number of classes, for fine-tuning."""
    here, path = build(kind, OwnHead()), str(tmp_path / 'weights.pth')
    torch.save(dict(model=theirs().state_dict()), path)
    with pytest.raises(CheckpointError, match='OwnHead.*head.classifier'):
        load_checkpoint(here, path)
    there = theirs(num_classes=7).state_dict()
    torch.save(dict(model=there), path)
    load_checkpoint(here, path)
    tokens = here.backbone.cls_token, there['cls_token'].float()
    assert torch.equal(*tokens)


@pytest.mark.parametrize('key', ['model', 'teacher'])
@pytest.mark.parametrize('prefix', ['', 'module.'])
def test_release_in_a_dict_loads_by_mmengine(key, prefix, tmp_path):
    """DeiT and DINO store their weights under a key of their own."""
    timm, here = theirs(), build(KINDS[0], HEAD)
    weights = {prefix + k: x for k, x in timm.state_dict().items()}
    file = str(tmp_path / 'release.pth')
    torch.save({key: weights, 'epoch': 300, 'optimizer': {}}, file)
    load_checkpoint(here, file)
    expected = timm.state_dict()
    assert torch.equal(
        last_linear(here.head).weight, expected['head.weight'].float()
    )
    backbone = build(KINDS[0], HEAD).backbone
    load_checkpoint(backbone, file)
    for found in (here.backbone, backbone):
        found = found.layers[1].attn.qkv.weight
        assert torch.equal(found, expected['blocks.1.attn.qkv.weight'].float())


@pytest.mark.parametrize('kind', KINDS)
@pytest.mark.parametrize('head', [HEAD, LINEAR, CLA_HEAD])
def test_new_classifier_is_one_line_of_the_log(kind, head, tmp_path, log):
    here = build(kind, head, final_norm=False, out_indices=[1, -1])
    loaded(here, theirs(num_classes=7), tmp_path)
    assert sum('the classifier is new' in line for line in log) == 1
