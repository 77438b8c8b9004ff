# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Distillation from a frozen classifier."""

from copy import deepcopy
from functools import cache
from unittest.mock import patch

import pytest
import timm
import torch
import torch.nn.functional as F
from mmengine.config import Config
from mmengine.logging import MMLogger
from mmengine.optim import build_optim_wrapper
from mmpretrain.structures import DataSample
from small_models import CACHE, RESMLP, arch, build, classifier, images, vit

from mmclca.models.distillation import deit_distillation
from mmclca.models.reduction.trace import patch_weights
from mmclca.registry import MODELS

DEIT = dict(type='mmclca.DeiTDistillation')
LOGITS = dict(type='mmclca.LogitDistillation')
TOKENS = dict(type='mmclca.TokenDistillation')
SAMPLES = [DataSample().set_gt_label(i % 5) for i in range(4)]


def plain_vit(num_classes=5, embed_dims=16, **options):
    """Plain mmpretrain classifier config; options are those of its ViT."""
    backbone = dict(vit(3, **options), arch=arch(3, embed_dims))
    head = dict(num_classes=num_classes, in_channels=embed_dims)
    return dict(
        type='ImageClassifier',
        backbone=dict(backbone, type='VisionTransformer'),
        head=dict(head, type='VisionTransformerClsHead'),
    )


@cache
def weights_of_plain_vit():
    return build(plain_vit()).state_dict()


@pytest.fixture
def distilled(tmp_path):
    """Return a factory of students; they have the options of the teacher."""

    def distilled(
        reducer=dict(type='mmclca.EViT', keep_rate=0.5),
        teacher=None,
        cla=True,
        **options,
    ):
        checkpoint = tmp_path / 'teacher.pth'
        if teacher is not None:
            torch.save(build(teacher).state_dict(), checkpoint)
        elif not checkpoint.exists():
            torch.save(weights_of_plain_vit(), checkpoint)
        given = dict(checkpoint=str(checkpoint), model=teacher or plain_vit())
        given |= dict(loss=[LOGITS, TOKENS]) | options
        backbone = vit(4, reducer=reducer, reduce_at=(1, 2), cache=CACHE)
        return build(classifier(backbone, cla, teacher=given)).train()

    return distilled


def teacher_of(model):
    model.teacher.prepare(model)
    return model.teacher.model


@pytest.mark.parametrize('cla', [False, True])
def test_distillation_losses_equal_loop(distilled, cla):
    losses = dict(LOGITS, weight=3.0, tau=4), dict(TOKENS, weight=2.0)
    model = distilled(cla=cla, loss=losses)
    teacher, x = teacher_of(model), images(4)
    losses = model(x, SAMPLES, mode='loss')
    assert losses.keys() == {
        'loss',
        'loss_distill_logits',
        'loss_distill_tokens',
    }
    if cla:  # the head runs once
        assert model.head.layers[0].num_batches_tracked == 1
    model.head.eval()
    feats, tokens = model.backbone.forward_tokens(x)
    model.head.train()
    p = (model.head(feats) / 4).softmax(-1)
    q = (teacher(x) / 4).softmax(-1)
    logits = 3 * 16 * (q * (q / p).log()).sum(-1).mean()
    assert torch.allclose(losses['loss_distill_logits'], logits, rtol=1e-4)

    teacher.backbone.out_type = 'raw'
    patches = teacher.backbone(x)[0][:, 1:]
    weights = patch_weights(tokens.trace, 4, 16)
    ours = tokens.features if not cla else F.layer_norm(tokens.features, (16,))
    errors = []
    for image in range(4):
        of_image = []
        for token in range(weights.size(1)):
            weight = weights[image, token]
            if weight.any():
                target = (weight / weight.sum()) @ patches[image]
                error = (ours[image, token] - target).square().mean()
                of_image.append(error)
        errors.append(torch.stack(of_image).mean())
    expected = 2 * torch.stack(errors).mean()
    assert torch.allclose(losses['loss_distill_tokens'], expected, rtol=1e-4)


@pytest.mark.parametrize('name', ['DynamicViT', 'PatchMerger', 'ToMe'])
def test_reducers_learn_from_teacher(distilled, name):
    model = distilled(dict(type=f'mmclca.{name}', keep_rate=0.5))
    losses = model(images(4), SAMPLES, mode='loss')
    assert {'loss_distill_logits', 'loss_distill_tokens'} < losses.keys()
    model.parse_losses(losses)[0].backward()
    for key, parameter in model.named_parameters():
        assert parameter.grad.isfinite().all(), key


def test_teacher_is_frozen_and_not_part_of_the_student(distilled):
    model = distilled()
    teacher = teacher_of(model)
    before = deepcopy(teacher.state_dict())
    assert deepcopy(model).teacher is model.teacher
    assert not any('teacher' in key for key in model.state_dict())
    inside = {id(parameter) for parameter in model.parameters()}
    assert not inside & {id(p) for p in teacher.parameters()}
    optim = build_optim_wrapper(
        model, dict(optimizer=dict(type='SGD', lr=0.1))
    )
    model.train_step(dict(inputs=images(4), data_samples=SAMPLES), optim)
    assert not teacher.training
    assert not any(p.requires_grad for p in teacher.parameters())
    for key, value in teacher.state_dict().items():
        assert torch.equal(value, before[key]), key


def test_model_predicts_if_teacher_files_are_missing(distilled):
    gone = dict(model='gone.py', checkpoint='gone.pth')
    model = distilled(**gone)
    assert model.eval()(images(2)).shape == (2, 5)
    with pytest.raises(ValueError, match='gone.py'):
        model.train()(images(4), SAMPLES, mode='loss')  # not initialized


def test_teacher_weights_are_read_with_the_first_batch(distilled, tmp_path):
    """The file is opened once, for the checks."""
    model = distilled()
    with patch.object(torch, 'load', wraps=torch.load) as opened:
        model.init_weights()
        assert opened.call_count == 1 and opened.call_args.kwargs['mmap']
        before = {p.data_ptr() for p in model.teacher.model.parameters()}
        for _ in range(2):
            model(images(4), SAMPLES, mode='loss')
    assert opened.call_count == 1
    after = {p.data_ptr() for p in model.teacher.model.parameters()}
    assert not before & after  # copied: the file may change now
    (tmp_path / 'teacher.pth').write_bytes(b'')
    assert model(images(4), SAMPLES, mode='loss')['loss'].isfinite()


def test_teacher_is_refused_if_weights_are_nan(distilled):
    model = distilled()
    checkpoint = model.teacher.checkpoint
    weights = torch.load(checkpoint, weights_only=True)
    weights['head.layers.head.bias'].fill_(torch.nan)
    torch.save(weights, checkpoint)
    with pytest.raises(
        ValueError, match=r'teacher: .* NaN.*head.layers.head.bias'
    ):
        model(images(4), SAMPLES, mode='loss')


def linear(in_channels, **options):
    """Config of the plain ViT with a linear head."""
    head = dict(type='LinearClsHead', num_classes=5, in_channels=in_channels)
    return dict(plain_vit(), head=head, **options)


MAP = dict(plain_vit()['backbone'], out_type='featmap')
TOPK = dict(reducer=dict(type='mmclca.TopK', keep_rate=0.5), reduce_at=(1,))
REFUSED = (
    (plain_vit(7), {}, 'num_classes is 7'),
    (plain_vit(embed_dims=8), {}, 'embed_dims'),
    (plain_vit(patch_size=16), {}, 'patch_size'),
    (None, dict(model='no/such.py'), 'no/such.py'),
    (None, dict(checkpoint='no/such.pth'), 'no/such.pth'),
    (None, dict(model=dict(type='NoSuchNet')), 'NoSuchNet'),
    (None, dict(model=linear(16), loss=LOGITS), 'head.fc'),
    (linear(24, backbone=RESMLP), dict(img_size=48, loss=LOGITS), '48'),
    (dict(plain_vit(), head=None), {}, 'head'),
    (linear(4, backbone=MAP), dict(loss=LOGITS), '16 x 4 x 5'),
    (None, dict(model=dict(type='TimmClassifier', model_name='x')), 'Unknown'),
    (None, dict(loss=[]), '0 losses'),
    (None, dict(loss=[LOGITS, LOGITS]), '2 losses'),
    (None, dict(img_size=48), 'img_size=48'),
    (
        dict(plain_vit(), backbone=dict(type='LeNet5', num_classes=-1)),
        {},
        'LeNet5',
    ),
    (classifier(vit(3, **TOPK)), {}, 'TopK'),
)


@pytest.mark.parametrize('teacher, options, named', REFUSED)
def test_teacher_is_refused_if_it_does_not_fit(
    distilled, teacher, options, named
):
    with pytest.raises(ValueError, match=f'teacher: .*{named}'):
        distilled(teacher=teacher, **options).init_weights()


@pytest.mark.parametrize('text', ['a = 1', 'a = ('])
def test_teacher_config_file_is_named_in_errors(distilled, tmp_path, text):
    (tmp_path / 'x.py').write_text(text)
    with pytest.raises(ValueError, match='teacher: .*x.py') as error:
        distilled(model=str(tmp_path / 'x.py')).init_weights()
    assert '\n' not in str(error.value)


def test_teacher_is_refused_if_image_size_is_unsupported(distilled):
    model = distilled(teacher=linear(24, backbone=RESMLP), loss=LOGITS)
    model.init_weights()
    model.teacher.size = None  # mimic an unknown image size
    with pytest.raises(ValueError, match=r'^teacher: .* \(48, 48\) px'):
        model(images(4, 48), SAMPLES, mode='loss')


def test_teacher_images_have_the_size_of_timm(distilled):
    vit = dict(model_name='test_vit', img_size=48, num_classes=5)
    teacher = dict(type='TimmClassifier', **vit)
    model = distilled(teacher=teacher, loss=LOGITS)
    teacher_of(model)
    assert model.teacher.convert(images(2)).shape == (2, 3, 48, 48)


def test_reducer_is_refused_if_teacher_is_missing(distilled):
    reducer = dict(type='mmclca.SiT', keep_rate=0.5, recalibrate=True)
    config = classifier(vit(3, reducer=reducer, reduce_at=(1,)))
    alone = build(config).train()
    for model in (alone, distilled(reducer, loss=LOGITS)):
        with pytest.raises(ValueError, match='SiT needs'):
            model(images(4), SAMPLES, mode='loss')
    assert alone.eval()(images(2)).shape == (2, 5)
    plain = build(dict(config, type='ImageClassifier')).train()
    with pytest.raises(ValueError, match='TokenReductionClassifier'):
        plain(images(4), SAMPLES, mode='loss')


def processing(mean=127.5, std=127.5, to_rgb=True):
    channels = (0.0, 1.0, 2.0)
    mean, std = ([value + c for c in channels] for value in (mean, std))
    return dict(mean=mean, std=std, to_rgb=to_rgb)


@pytest.mark.parametrize('other', [{}, dict(mean=120.0, to_rgb=False)])
def test_teacher_images_have_its_normalization_and_size(distilled, other):
    """Compare with the output of the teacher's preprocessor."""
    processor = processing(std=99.0, **other)
    config = dict(plain_vit(img_size=48), data_preprocessor=processor)
    model = distilled(teacher=config, loss=LOGITS)
    ours = model.data_preprocessor = MODELS.build(
        dict(processing(), type='ClsDataPreprocessor')
    )
    teacher = teacher_of(model)
    photos = dict(inputs=255 * torch.rand(2, 3, 32, 32))
    own, theirs = (
        preprocess(photos)['inputs']
        for preprocess in (ours, teacher.data_preprocessor)
    )
    larger = F.interpolate(theirs, 48, mode='bicubic', antialias=True)
    assert torch.allclose(model.teacher.convert(own), larger, atol=1e-4)
    model.teacher.size = None
    assert torch.allclose(model.teacher.convert(own), theirs, atol=1e-4)


def test_teacher_leaves_random_state(distilled):
    model, state = distilled(), torch.get_rng_state()
    teacher_of(model)
    assert torch.equal(torch.get_rng_state(), state)


def test_teacher_warns_if_only_one_model_normalizes(distilled):
    teacher = dict(plain_vit(), data_preprocessor=processing())
    model = distilled(teacher=teacher)
    with patch.object(MMLogger, 'warning') as warning:
        teacher_of(model)  # the student defines no normalization
    assert 'only one of teacher and student' in warning.call_args.args[0]
    assert model.teacher.rescale is None


TAUGHT = dict(  # classifiers without patch tokens
    cnn=dict(
        type='ImageClassifier',
        backbone=dict(type='TIMMBackbone', model_name='test_resnet'),
        neck=dict(type='GlobalAveragePooling'),
        head=dict(type='LinearClsHead', num_classes=5, in_channels=96),
    ),
    timm=dict(type='TimmClassifier', model_name='test_resnet', num_classes=5),
)


@pytest.mark.parametrize('name, kind', [('cnn', 'hard'), ('timm', 'soft')])
def test_timm_teacher_loss_equals_deit_distillation(tmp_path, name, kind):
    cnn = timm.create_model('test_resnet', num_classes=5).eval()
    torch.save(cnn.state_dict(), tmp_path / 'timm.pth')
    loss = dict(DEIT, kind=kind, alpha=0.3, tau=2.0)
    teacher = dict(
        model=TAUGHT[name], checkpoint=str(tmp_path / 'timm.pth'), loss=loss
    )
    model = build(
        dict(
            type='mmclca.DistilledClassifier',
            backbone=RESMLP,
            head=dict(type='LinearClsHead', num_classes=5, in_channels=24),
            teacher=teacher,
        )
    ).double()
    x = images(4).double()
    losses, scores = model(x, SAMPLES, mode='loss'), model(x)
    targets = torch.tensor([0, 1, 2, 3])
    base = F.cross_entropy(scores, targets)
    args = scores, None, cnn.double()(x), base, kind, 0.3, 2.0
    total = losses['loss'] + losses['loss_distill']
    assert torch.allclose(total, deit_distillation(*args))
    assert torch.allclose(losses['loss'], 0.7 * base)


def test_distillation_token_learns_from_teacher(distilled):
    model = distilled(loss=dict(DEIT, kind='hard', alpha=0.25))
    backbone = vit(num_layers=2, dist_token=True)
    config = classifier(backbone)
    config['head'] = dict(
        type='mmclca.DistilledHead', num_classes=5, in_channels=16
    )
    student = build(config)
    student.teacher, x = model.teacher, images(4)
    losses = student(x, SAMPLES, mode='loss')
    cls, dist = student.head.token_scores(student.forward_features(x)[0])
    targets = torch.tensor([0, 1, 2, 3])
    teacher = teacher_of(student)(x).argmax(1)
    terms = (
        0.75 * F.cross_entropy(cls, targets),
        F.cross_entropy(dist, teacher),
    )
    assert torch.allclose(losses['loss'], terms[0])
    assert torch.allclose(losses['loss_distill'], 0.25 * terms[1])


@pytest.mark.parametrize('kind', [torch.float64, torch.bfloat16])
def test_teacher_follows_dtype_of_student(distilled, kind):
    model = distilled()
    if kind is torch.bfloat16:  # read before
        model(images(4), SAMPLES, mode='loss')
    model.to(kind)(images(4).to(kind), SAMPLES, mode='loss')
    assert {p.dtype for p in teacher_of(model).parameters()} == {kind}
    model.float()(images(4), SAMPLES, mode='loss')
    stored = torch.load(model.teacher.checkpoint, weights_only=True)
    for key, value in teacher_of(model).state_dict().items():
        assert torch.equal(value, stored[key]), key


def test_teacher_classes_are_matched_by_name(distilled, tmp_path):
    model, names = distilled(loss=LOGITS), ['ash', 'elm', 'fir', 'oak', 'yew']
    weights = torch.load(tmp_path / 'teacher.pth', weights_only=True)
    meta = dict(dataset_meta=dict(classes=names))
    torch.save(dict(state_dict=weights, meta=meta), tmp_path / 'teacher.pth')
    teacher_of(model)
    x, teacher = images(2), model.teacher
    before, _ = teacher.compute_outputs(x)
    teacher.match_names(names)
    teacher.match_names(None)
    assert torch.equal(teacher.compute_outputs(x)[0], before)
    teacher.match_names(names[::-1])
    assert torch.equal(teacher.compute_outputs(x)[0], before.flip(1))
    names[1] = 'oka'
    said = r"no 'oka' .do you mean oak\?.*ash, elm"
    with pytest.raises(ValueError, match=said):
        teacher.match_names(names)


def test_teacher_config_is_read_from_checkpoint_or_file(distilled, tmp_path):
    path = tmp_path / 'whole.pth'
    text = Config(dict(model=plain_vit())).pretty_text
    weights = build(plain_vit()).state_dict()
    torch.save(dict(state_dict=weights, meta=dict(cfg=text)), path)
    file = tmp_path / 'teacher.py'
    Config(dict(model=plain_vit())).dump(file)
    for config, weights in ((None, path), (file, tmp_path / 'teacher.pth')):
        given = config and str(config)
        model = distilled(model=given, checkpoint=str(weights))
        assert len(model(images(4), SAMPLES, mode='loss')) == 3
