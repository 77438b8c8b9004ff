# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Distillation from a frozen vision transformer with all its tokens."""

from copy import deepcopy
from unittest.mock import patch

import pytest
import torch
import torch.nn.functional as F
from mmengine.config import Config
from mmengine.logging import MMLogger
from mmengine.optim import build_optim_wrapper
from mmpretrain.structures import DataSample
from small_models import CACHE, REDUCERS, arch, build, classifier, images, vit

from mmclca.models.distillation import check_fit
from mmclca.models.reduction.trace import patch_weights

SAMPLES = [DataSample().set_gt_label(i % 5) for i in range(4)]


def plain_vit(num_classes=5, embed_dims=16, patch_size=8, **options):
    """Config of a classifier of mmpretrain alone."""
    return dict(
        type='ImageClassifier',
        backbone=dict(
            type='VisionTransformer',
            arch=arch(num_layers=3, embed_dims=embed_dims),
            img_size=32,
            patch_size=patch_size,
        ),
        head=dict(
            type='VisionTransformerClsHead',
            num_classes=num_classes,
            in_channels=embed_dims,
        ),
        **options,
    )


@pytest.fixture
def distilled(tmp_path):
    """Makes a student; keyword arguments are those of the teacher."""

    def distilled(
        reducer=dict(type='mmclca.EViT', keep_rate=0.5),
        teacher=None,
        cla=True,
        **options,
    ):
        config = teacher or plain_vit()
        checkpoint = tmp_path / 'teacher.pth'
        if not checkpoint.exists():
            torch.save(build(config).state_dict(), checkpoint)
        options.setdefault('checkpoint', str(checkpoint))
        options.setdefault('config', config)
        backbone = vit(
            num_layers=4, reducer=reducer, reduce_at=(1, 2), cache=CACHE
        )
        return build(classifier(backbone, cla, teacher=options)).train()

    return distilled


def teacher_of(model):
    model.teacher.prepare(model)
    return model.teacher.model


@pytest.mark.parametrize('cla', [False, True])
def test_losses_are_what_they_say(distilled, cla):
    model = distilled(
        cla=cla, logit_weight=3.0, token_weight=2.0, temperature=4
    )
    teacher, x = teacher_of(model), images(4)
    losses = model(x, SAMPLES, mode='loss')
    assert losses.keys() == {
        'loss',
        'loss_distill_logits',
        'loss_distill_tokens',
    }
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
    ours = tokens.x if not cla else F.layer_norm(tokens.x, (16,))
    errors = []
    for image in range(4):
        for token in range(weights.size(1)):
            weight = weights[image, token]
            if weight.any():
                target = (weight / weight.sum()) @ patches[image]
                error = (ours[image, token] - target).square().mean()
                errors.append(error)
    expected = 2 * torch.stack(errors).mean()
    assert torch.allclose(losses['loss_distill_tokens'], expected, rtol=1e-4)


def test_batch_statistics_of_the_head_move_once_a_step(distilled):
    model = distilled()
    model(images(4), SAMPLES, mode='loss')
    assert model.head.layers[0].num_batches_tracked == 1


@pytest.mark.parametrize('name', REDUCERS)
def test_every_reducer_learns_from_it(distilled, name):
    model = distilled(dict(type=f'mmclca.{name}', keep_rate=0.5))
    losses = model(images(4), SAMPLES, mode='loss')
    assert {'loss_distill_logits', 'loss_distill_tokens'} < losses.keys()
    model.parse_losses(losses)[0].backward()
    for key, parameter in model.named_parameters():
        assert parameter.grad.isfinite().all(), key


def test_sit_recalibrates_its_tokens(distilled):
    model = distilled(
        dict(type='mmclca.SiT', keep_rate=0.5, recalibrate=True), cla=False
    )
    x = images(4)
    loss = model(x, SAMPLES, mode='loss')['loss_distill_tokens']
    teacher_of(model).backbone.out_type = 'raw'
    patches = teacher_of(model).backbone(x)[0][:, 1:]
    _, tokens = model.backbone.forward_tokens(x)
    y = tokens.x[:, 1:]
    reverse = model.backbone.reducer.reverse
    logits = reverse.weight(y) * reverse.scale  # (B, N, P)
    made = torch.einsum('bnp,bnc->bpc', logits.softmax(1), y)
    assert made.shape == patches.shape
    expected = 0.5 * (made - patches).square().mean()
    assert torch.allclose(loss, expected, rtol=1e-4)
    loss.backward()
    assert reverse.weight[1].weight.grad.any()


def test_teacher_is_frozen_and_outside_of_the_student(distilled):
    model = distilled()
    teacher = teacher_of(model)
    before = deepcopy(teacher.state_dict())
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


def test_copies_share_the_teacher_and_it_follows_the_images(distilled):
    model = distilled()
    assert deepcopy(model).teacher is model.teacher
    model.double()
    losses = model(images(4).double(), SAMPLES, mode='loss')
    assert losses['loss_distill_tokens'].dtype == torch.float64


def test_config_file_with_our_own_kind_of_teacher(distilled, tmp_path):
    teacher = classifier(vit(num_layers=3, cache=None, reduce_at=()))
    file = tmp_path / 'teacher.py'
    Config(dict(model=teacher)).dump(file)
    model = distilled(teacher=teacher, config=str(file))
    assert len(model(images(4), SAMPLES, mode='loss')) == 3


def test_a_model_is_used_without_the_files_of_its_teacher(distilled):
    gone = dict(config='gone.py', checkpoint='gone.pth')
    model = distilled(**gone)
    assert model.eval()(images(2)).shape == (2, 5)
    with pytest.raises(ValueError, match='teacher: there is no config file'):
        model.train()(images(4), SAMPLES, mode='loss')  # not initialized


def test_weights_are_read_with_the_first_batch(distilled, tmp_path):
    """Checked before, and opened once."""
    model = distilled()
    with patch.object(torch, 'load', wraps=torch.load) as opened:
        model.init_weights()
        assert opened.call_count == 1 and opened.call_args.kwargs['mmap']
        before = {p.data_ptr() for p in model.teacher.model.parameters()}
        for _ in range(2):
            model(images(4), SAMPLES, mode='loss')
    assert opened.call_count == 1
    after = {p.data_ptr() for p in model.teacher.model.parameters()}
    assert not before & after  # no part of the file, which may change now
    (tmp_path / 'teacher.pth').write_bytes(b'')
    assert model(images(4), SAMPLES, mode='loss')['loss'].isfinite()


def test_a_teacher_that_is_nan_is_refused_with_the_first_batch(distilled):
    model = distilled()
    checkpoint = model.teacher.checkpoint
    weights = torch.load(checkpoint, weights_only=True)
    weights['head.layers.head.bias'].fill_(torch.nan)
    torch.save(weights, checkpoint)
    with pytest.raises(
        ValueError, match=r'teacher: .* NaN: head.layers.head.bias'
    ):
        model(images(4), SAMPLES, mode='loss')


@pytest.mark.parametrize(
    'teacher, options, message',
    [
        (plain_vit(7), {}, r'has classes .* 7, the student 5'),
        (plain_vit(embed_dims=8), {}, r'channels .* 8, the student 16; they'),
        (plain_vit(patch_size=16), {}, r'patch_size \(16, 16\), the student'),
        (None, dict(config='no/such.py'), 'no config file no/such.py'),
        (
            None,
            dict(checkpoint='no/such.pth'),
            'teacher: there is no checkpoint no/such.pth',
        ),
        (
            None,
            dict(config=dict(type='NoSuchNet')),
            '^teacher: .NoSuchNet is not in',
        ),
        (None, dict(logit_weight=-1), 'logit_weight=-1 .* not be negative'),
        (None, dict(temperature=0), 'temperature=0 must be above 0'),
        (None, dict(logit_weight='a'), "logit_weight='a' .* not be negative"),
        (dict(plain_vit(), head=None), {}, 'is no ImageClassifier with a h'),
        (
            dict(plain_vit(), backbone=dict(type='LeNet5', num_classes=-1)),
            {},
            'teacher: the backbone is a LeNet5',
        ),
        (
            classifier(
                vit(
                    3,
                    reducer=dict(type='mmclca.TopK', keep_rate=0.5),
                    reduce_at=(1,),
                )
            ),
            {},
            'TopK reduces its tokens',
        ),
    ],
)
def test_what_does_not_fit_is_refused(distilled, teacher, options, message):
    with pytest.raises(ValueError, match=message):
        distilled(teacher=teacher, **options).init_weights()


def test_checkpoint_of_another_model_is_refused(distilled, tmp_path):
    torch.save({'head.layers.head.bias': torch.zeros(5)}, tmp_path / 'x.pth')
    model = distilled(checkpoint=str(tmp_path / 'x.pth'))
    with pytest.raises(ValueError, match='x.pth does not fit TokenReduction'):
        model.init_weights()


def test_reducer_that_needs_a_teacher_says_so(distilled):
    reducer = dict(type='mmclca.SiT', keep_rate=0.5, recalibrate=True)
    config = classifier(vit(3, reducer=reducer, reduce_at=(1,)))
    alone = build(config).train()
    for model in (alone, distilled(reducer, token_weight=0)):
        with pytest.raises(ValueError, match='SiT as configured learns from'):
            model(images(4), SAMPLES, mode='loss')
    assert alone.eval()(images(2)).shape == (2, 5)
    plain = build(dict(config, type='ImageClassifier')).train()
    with pytest.raises(ValueError, match='TokenReductionClassifier'):
        plain(images(4), SAMPLES, mode='loss')


def test_recalibration_is_for_images_of_one_size(distilled):
    model = distilled(dict(type='mmclca.SiT', keep_rate=0.5, recalibrate=True))
    with pytest.raises(ValueError, match='makes 16 tokens, .* 36 patches'):
        model(images(4, 48), SAMPLES, mode='loss')


def test_other_channels_may_teach_class_scores(distilled):
    model = distilled(teacher=plain_vit(embed_dims=8), token_weight=0)
    losses = model(images(4), SAMPLES, mode='loss')
    assert losses.keys() == {'loss', 'loss_distill_logits'}


def processing(mean=127.5, to_rgb=True):
    return dict(mean=[mean] * 3, std=[127.5] * 3, to_rgb=to_rgb)


@pytest.mark.parametrize('other', [{}, dict(mean=120.0), dict(to_rgb=False)])
def test_teacher_and_student_see_images_alike(distilled, other):
    model = distilled(teacher=plain_vit(data_preprocessor=processing()))
    with patch.object(MMLogger, 'warning') as warning:
        teacher_of(model)  # the student says nothing
    assert 'only one of teacher and student' in warning.call_args.args[0]
    same = plain_vit(data_preprocessor=processing(**other))
    student = plain_vit(data_preprocessor=processing())
    models = build(same), build(student)
    if not other:
        check_fit(*models, token_weight=0)
        return
    with pytest.raises(ValueError, match='has normalization'):
        check_fit(*models, token_weight=0)
