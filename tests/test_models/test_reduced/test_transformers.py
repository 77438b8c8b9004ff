# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Reduced models of Transformers are used as the originals."""

import pickle
from copy import deepcopy
from inspect import signature

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from PIL import Image
from small_transformers import (
    CLASSIFIERS,
    NAMES,
    SIZES,
    small_images,
    small_transformer,
)

import mmclca
from mmclca.models import list_methods
from mmclca.visualization import class_activation_maps

# the import of Transformers takes seconds
pytestmark = pytest.mark.slow
EXACT = dict(rtol=0, atol=1e-10)
VIT = 'ViTForImageClassification'
LABELS = torch.tensor([0, 1, 2])


def assert_equal(found, expected):
    assert type(found) is type(expected) and found.keys() == expected.keys()
    for name, value in expected.items():
        torch.testing.assert_close(found[name], value, **EXACT)


@pytest.mark.parametrize(('method', 'rate'), [(None, 0.5), ('ToMe', 1.0)])
@pytest.mark.parametrize('name', NAMES)
@torch.no_grad()
def test_outputs_equal_original_without_reduction(name, method, rate):
    model, images = small_transformer(name), small_images()
    reduced = mmclca.reduce_tokens(model, method, rate)
    assert isinstance(reduced, type(model))
    assert reduced.state_dict().keys() == model.state_dict().keys()
    for options in ({}, dict(output_hidden_states=True)):
        found = reduced(pixel_values=images, **options)
        assert_equal(found, model(pixel_values=images, **options))
    found = reduced(images, return_dict=False)
    expected = model(images, return_dict=False)
    torch.testing.assert_close(found, expected, **EXACT)


@pytest.mark.parametrize('name', NAMES)
@torch.no_grad()
def test_positions_are_interpolated_as_in_original(name):
    model, images = small_transformer(name), small_images(size=(48, 40))
    reduced = mmclca.reduce_tokens(model, 'ToMe', 1.0)
    options = dict(interpolate_pos_encoding=True)
    assert_equal(reduced(images, **options), model(images, **options))


@pytest.mark.parametrize('method', list_methods())
@pytest.mark.parametrize('name', NAMES)
@torch.no_grad()
def test_every_method_runs_and_images_are_independent(name, method):
    model, images = small_transformer(name), small_images()
    if 'Siglip' in name:
        try:
            reduced = mmclca.reduce_tokens(model, method, 0.5)
        except ValueError as error:
            assert 'needs a CLS token' in str(error)
            return
    reduced = mmclca.reduce_tokens(model, method, 0.5)
    left = reduced.forward_tokens(images)[1].features.size(1)
    assert left < mmclca.reduce_tokens(model, None).embed(images)[
        0
    ].features.size(1)
    keys = ['logits', 'image_embeds', 'pooler_output']
    (key,) = [key for key in keys if key in reduced(images)]
    found = reduced(images)[key]
    assert found.isfinite().all()
    each = [reduced(image)[key] for image in images.split(1)]
    torch.testing.assert_close(found, torch.cat(each))


def test_loss_includes_that_of_the_method():
    reduced = mmclca.reduce_tokens(small_transformer(VIT), 'DynamicViT', 0.5)
    output = reduced.train()(small_images(), labels=LABELS)
    loss = F.cross_entropy(output.logits, LABELS) + reduced.auxiliary_loss()
    torch.testing.assert_close(output.loss, loss)
    output.loss.backward()
    assert any(x.grad.any() for x in reduced.reducer.parameters())
    logits = reduced.eval()(small_images(), LABELS).logits
    torch.testing.assert_close(logits, reduced(small_images())[0])


@torch.no_grad()
def test_hidden_states_are_the_remaining_tokens():
    reduced = mmclca.reduce_tokens(small_transformer(VIT), 'ToMe', 0.5)
    found = reduced(small_images(), output_hidden_states=True).hidden_states
    assert [x.size(1) for x in found] == [17, 17, 9, 5, 3]


@pytest.mark.parametrize(
    'inputs', [dict(output_attentions=True), dict(attention_mask=LABELS)]
)
def test_input_that_refers_to_all_tokens_is_refused(inputs):
    reduced = mmclca.reduce_tokens(small_transformer(VIT), 'ToMe', 0.5)
    with pytest.raises(ValueError, match=next(iter(inputs))) as error:
        reduced(small_images(), **inputs)
    assert '\n' not in str(error.value)


def test_attentions_in_the_config_are_refused():
    model = small_transformer(VIT)
    model.config._attn_implementation = 'eager'
    model.config.output_attentions = True
    reduced = mmclca.reduce_tokens(model, 'ToMe', 0.5)
    with pytest.raises(ValueError, match='output_attentions'):
        reduced(small_images())


@torch.no_grad()
def test_images_of_clip_are_reduced():
    transformers = pytest.importorskip('transformers')
    config = transformers.CLIPConfig(
        vision_config=SIZES,
        text_config=SIZES | dict(num_hidden_layers=1, vocab_size=9),
    )
    clip = transformers.CLIPModel(config).eval()
    words = torch.ones(2, 3, dtype=torch.long)
    inputs = dict(input_ids=words, pixel_values=small_images().float())
    expected = clip(**inputs).logits_per_image
    vision = clip.vision_model
    clip.vision_model = mmclca.reduce_tokens(vision, 'ToMe', 1.0)
    torch.testing.assert_close(clip(**inputs).logits_per_image, expected)
    clip.vision_model = mmclca.reduce_tokens(vision, 'ToMe', 0.5)
    assert clip(**inputs).logits_per_image.shape == expected.shape


@torch.no_grad()
def test_model_has_name_signature_and_attributes_of_original():
    model = small_transformer(VIT)
    reduced = mmclca.reduce_tokens(model, 'ToMe', 0.5)
    assert type(reduced).__name__ == VIT
    assert signature(reduced.forward) == signature(model.forward)
    for name in ('device', 'dtype', 'num_labels', 'main_input_name'):
        assert getattr(reduced, name) == getattr(model, name)
    images = small_images()
    for copied in (deepcopy(reduced), pickle.loads(pickle.dumps(reduced))):
        assert type(copied) is type(reduced)
        assert_equal(copied(images), reduced(images))


@torch.no_grad()
def test_saved_model_is_the_original(tmp_path):
    model, images = small_transformer(VIT).float(), small_images().float()
    mmclca.reduce_tokens(model, 'DynamicViT', 0.5).save_pretrained(tmp_path)
    opened = type(model).from_pretrained(tmp_path)
    assert_equal(opened(images), model(images))
    assert opened.config.architectures == [VIT]


def test_pipeline_classifies_photos():
    transformers = pytest.importorskip('transformers')
    model = small_transformer(VIT).float()
    size = dict(height=32, width=32)
    pipeline = transformers.pipeline(
        'image-classification',
        model=mmclca.reduce_tokens(model, 'ToMe', 0.5),
        image_processor=transformers.ViTImageProcessorPil(size=size),
    )
    photo = Image.fromarray(np.zeros((40, 40, 3), np.uint8))
    assert sum(x['score'] for x in pipeline(photo)) == pytest.approx(1)


def test_trainer_trains_and_saves(tmp_path):
    transformers = pytest.importorskip('transformers')
    pytest.importorskip('accelerate')
    model = small_transformer(VIT).float()
    reduced = mmclca.reduce_tokens(model, 'DynamicViT', 0.5, copy=True)
    before = deepcopy(reduced.state_dict())
    rows = zip(small_images().float(), LABELS, strict=True)
    data = [dict(pixel_values=x, labels=int(label)) for x, label in rows]
    options = dict(use_cpu=True, report_to=[], disable_tqdm=True)
    arguments = transformers.TrainingArguments(
        tmp_path, gradient_checkpointing=True, num_train_epochs=1, **options
    )
    trainer = transformers.Trainer(
        reduced, arguments, train_dataset=data, eval_dataset=data
    )
    trainer.train()
    assert trainer.evaluate()['eval_loss'] > 0
    after = reduced.state_dict()
    assert not after['classifier.weight'].equal(before['classifier.weight'])
    assert not all(after[x].equal(before[x]) for x in after if 'reducer' in x)
    trainer.save_model(tmp_path)
    type(model).from_pretrained(tmp_path)


@pytest.mark.parametrize('name', CLASSIFIERS)
def test_classifier_is_replaced_and_scores_follow_features(name):
    reduced = mmclca.reduce_tokens(small_transformer(name), 'ToMe', 0.5)
    images = small_images()
    features = reduced.forward_features(images)
    scores = reduced.forward_head(features)
    torch.testing.assert_close(scores, reduced(images).logits)
    inputs = reduced.forward_head(features, pre_logits=True)
    torch.testing.assert_close(reduced.get_classifier()(inputs), scores)
    reduced.reset_classifier(3)
    output = reduced(images, labels=LABELS)
    assert output.logits.shape == (3, 3) and output.loss > 0


@pytest.mark.parametrize('name', CLASSIFIERS[:-1])
def test_clca_adds_cache_and_head(name, tmp_path):
    reduced = mmclca.reduce_tokens(small_transformer(name), clca=True)
    output = reduced(small_images(), labels=LABELS)
    assert output.logits.shape == (3, 5) and output.loss > 0
    with pytest.raises(ValueError, match='CLA'):
        reduced.save_pretrained(tmp_path)


@pytest.mark.parametrize(
    ('name', 'settings', 'message'),
    [
        ('ViTModel', dict(clca=True), 'classifier'),
        ('SiglipVisionModel', dict(method='EViT'), 'CLS'),
        ('SiglipForImageClassification', dict(clca=True), 'class token'),
    ],
)
def test_setting_that_the_model_does_not_allow_is_refused(
    name, settings, message
):
    with pytest.raises(ValueError, match=message) as error:
        mmclca.reduce_tokens(small_transformer(name), **settings)
    assert '\n' not in str(error.value)


@pytest.mark.parametrize(
    ('name', 'message'),
    [
        ('Beit', 'transformers.*BeitModel.* bias'),
        ('ViTMAE', 'transformers.*ViTMAEModel.* expected'),
    ],
)
def test_other_class_is_refused_with_library_and_reason(name, message):
    transformers = pytest.importorskip('transformers')
    config = getattr(transformers, f'{name}Config')(**SIZES)
    with torch.device('meta'):
        model = getattr(transformers, f'{name}Model')(config)
    with pytest.raises(ValueError, match=message) as error:
        mmclca.reduce_tokens(model)
    assert '\n' not in str(error.value)


@pytest.mark.parametrize('name', ['ViTModel', 'SiglipForImageClassification'])
def test_pictures_of_reduced_model(name):
    reduced = mmclca.reduce_tokens(small_transformer(name), 'ToMe', 0.5)
    maps = class_activation_maps(reduced, small_images())
    assert maps.shape == (3, 4, 4) and maps.isfinite().all()


@pytest.mark.parametrize('name', ['ViTModel', 'SiglipForImageClassification'])
def test_onnx_file_equals_pytorch(name, tmp_path):
    reduced = mmclca.reduce_tokens(small_transformer(name), 'ToMe', 0.5)
    assert mmclca.export_onnx(reduced, tmp_path / 'model.onnx') < 1e-4
