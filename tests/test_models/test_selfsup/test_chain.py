# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Load pre-trained encoders into classifiers, in full or in part."""

from unittest.mock import patch

import pytest
import torch
from mmengine.config import Config
from mmpretrain.structures import DataSample
from small_models import CACHE, arch, build, classifier, images, vit
from small_selfsup import MAE, SIDE, mirl
from tiny_run import ROOT

from mmclca.checkpoints.attention_heads import infer_num_heads
from mmclca.checkpoints.checkpoint import Checkpoint
from mmclca.checkpoints.load import load
from mmclca.checkpoints.opening import open_checkpoint
from mmclca.fitting.architecture import infer_backbone
from mmclca.registry import MODELS

FEW_SHOT = (
    ROOT
    / 'configs/few_shot/lf-evit-kr50_deit-tiny-p16_1xb32-20e_custom-224px.py'
)


@pytest.fixture
def pretrained(tmp_path):
    """A MIRL's encoder, and the checkpoint of the whole model."""
    model = build(mirl(2))
    path = str(tmp_path / 'pretrained.pth')
    torch.save({'state_dict': model.state_dict()}, path)
    return model.backbone, path


def backbone(num_layers=4, **options):
    return vit(num_layers, img_size=SIDE, patch_size=16, **options)


def test_clca_classifier_loads_pretrained_encoder(pretrained):
    """New and unused parameters are reported; features are equal."""
    encoder, path = pretrained
    reducer = dict(type='mmclca.EViT', keep_rate=0.5)
    places = dict(reducer=reducer, reduce_at=(1, 2), cache=CACHE)
    clca = MODELS.build(classifier(backbone(**places), cla=True))
    said = load(clca, path, strict=False).describe()
    assert 'new, not loaded: head.' in said
    assert 'not used here: neck.' in said
    plain = MODELS.build(classifier(backbone(out_type='raw')))
    load(plain, path, strict=False)
    x = images(height=SIDE)
    found = plain.eval().backbone(x)[-1]
    torch.testing.assert_close(found, encoder.eval()(x, None)[-1])
    weight = 'layers.2.attn.qkv.weight'
    own = clca.backbone.get_parameter(weight)
    assert torch.equal(own, encoder.get_parameter(weight))


def test_few_shot_classifier_loads_first_layers(tmp_path):
    """Nine of twelve layers are loaded; all but three are trained."""
    layers = arch(12)
    encoder = build(dict(MAE, backbone=dict(MAE['backbone'], arch=layers)))
    path = str(tmp_path / 'pretrained.pth')
    torch.save({'state_dict': encoder.state_dict()}, path)
    config = Config.fromfile(FEW_SHOT).model
    config.backbone.update(arch=layers, img_size=SIDE)
    config.head.update(in_channels=16, num_classes=3)
    model = MODELS.build(config)
    load(model, path, strict=False)
    assert equal_layers(model, encoder.backbone) == [True] * 9
    samples = [DataSample().set_gt_label(label) for label in range(2)]
    model.train().loss(images(height=SIDE), samples)['loss'].backward()
    layers = model.backbone.layers
    trained = [layer.ln1.weight.grad is not None for layer in layers]
    assert trained == [False] * 3 + [True] * 6
    assert model.head.fc.weight.grad.abs().sum() > 0


def store_config(encoder, path):
    """Add the config of an encoder to its checkpoint."""
    segments = encoder.num_segments
    backbone = dict(MAE['backbone'], num_segments=segments)
    text = Config(dict(model=dict(MAE, backbone=backbone))).pretty_text
    torch.save(dict(torch.load(path), meta=dict(cfg=text)), path)


def test_number_of_heads_is_reported_if_different(pretrained):
    """Shapes do not tell the number of heads; configs and decoders do."""
    encoder, path = pretrained
    store_config(encoder, path)
    for heads in (2, 4):
        other = dict(backbone(), arch=dict(arch(4), num_heads=heads))
        model = MODELS.build(classifier(other))
        with patch('mmclca.checkpoints.attention_heads.MMLogger') as log:
            load(model, path, strict=False)
        warned = log.get_current_instance().warning.call_args_list
        assert ['with 2 attention heads' in str(w) for w in warned] == (
            [True] * (heads != 2)
        )


NO_CONFIG = [  # parameter, width, number of heads, whether it is assumed
    ('module.model.decoder_embed.weight', 192, 12, False),
    ('module.model.decoder_embed.weight', 384, 12, False),
    ('module.model.decoder_embed.weight', 768, 12, True),
    ('module.momentum_encoder.cls_token', 384, 12, False),
    ('blocks.0.attn.qkv.weight', 192, 3, True),
    ('blocks.0.attn.qkv.weight', 1408, 16, True),
]


@pytest.mark.parametrize('name, width, number, is_assumed', NO_CONFIG)
def test_number_of_heads_is_inferred_without_config(
    name, width, number, is_assumed
):
    checkpoint = Checkpoint.from_weights({name: torch.ones(2)}, 'w.pth')
    heads = infer_num_heads(checkpoint, width)
    assert (heads.number, heads.is_assumed) == (number, is_assumed)


def started(path, total=4, **options):
    """Build a model with ``PartialInit`` from a file."""
    init = dict(type='mmclca.PartialInit', checkpoint=path, **options)
    model = MODELS.build(classifier(backbone(total), init_cfg=init))
    model.init_weights()
    return model


def equal_layers(model, encoder):
    pairs = zip(model.backbone.layers, encoder.layers, strict=False)
    return [
        all(
            torch.equal(p, q)
            for p, q in zip(a.parameters(), b.parameters(), strict=True)
        )
        for a, b in pairs
    ]


def test_partial_init_loads_selected_layers(pretrained):
    encoder, path = pretrained
    for options, taken in (
        (dict(first=0), 0),
        (dict(total=6, first=4), 4),
        (dict(last=1), 3),
    ):
        model = started(path, **options)
        assert equal_layers(model, encoder) == [i < taken for i in range(4)]
        assert torch.equal(model.backbone.cls_token, encoder.cls_token)
        fresh = model.backbone.layers[-1].ffn.layers[0][0].weight
        assert 0 < fresh.std() < 0.5 and model.is_init
    # evaluation needs no pre-trained file
    again = MODELS.build(classifier(backbone()))
    again.load_state_dict(model.state_dict())


@pytest.mark.parametrize(
    'options', ({}, dict(first=1, last=1), dict(first=5), dict(last=5))
)
def test_partial_init_is_refused_if_setting_is_invalid(tmp_path, options):
    with pytest.raises(ValueError, match='first=|last='):
        started(str(tmp_path), **options)


def test_architecture_is_read_from_stored_config(pretrained, tmp_path):
    """This includes the number of heads, unknown from shapes."""
    encoder, path = pretrained
    store_config(encoder, path)
    settings = infer_backbone(open_checkpoint(path))
    assert settings['type'] == 'mmclca.TokenReductionViT'
    assert settings['arch']['num_heads'] == 2
    model = MODELS.build(dict(settings, img_size=SIDE))
    load(model, path, strict=False)
    assert torch.equal(model.ln1.weight, encoder.ln1.weight)
