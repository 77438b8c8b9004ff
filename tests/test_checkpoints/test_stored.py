# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import re
import sys

import numpy as np
import pytest
import torch
from mmengine.config import Config
from safetensors.torch import save_file
from tiny_model import write_tiny
from tiny_run import CLASSES

from mmclca.apis import TokenReductionInferencer
from mmclca.checkpoints import opening
from mmclca.checkpoints.opening import open_checkpoint
from mmclca.checkpoints.stored import (
    stored_classes,
    stored_config,
    stored_text,
)
from mmclca.evaluation.open_set import fingerprint


@pytest.fixture(scope='module')
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp('stored')
    write_tiny(folder)
    return folder


@pytest.mark.parametrize('name', ['tiny.pth', 'tiny.safetensors'])
def test_config_and_classes_are_read(folder, name):
    checkpoint = open_checkpoint(str(folder / name))
    config = Config.fromfile(folder / 'tiny.py')
    read = stored_config(checkpoint).to_dict()
    assert {'model', 'test_dataloader'} <= {*read}
    assert 'optim_wrapper' not in read
    dataset = read.pop('test_dataloader')['dataset']
    assert dataset['pipeline'] == config.test_dataloader.dataset.pipeline
    assert {*dataset} == {'type', 'pipeline'}
    assert all(part == config[name] for name, part in read.items())
    assert tuple(stored_classes(checkpoint)) == CLASSES


def test_bare_weights_have_no_config(folder, tmp_path):
    bare = tmp_path / 'bare.pth'
    weights = torch.load(folder / 'tiny.pth', weights_only=True)['state_dict']
    torch.save(weights, bare)
    with pytest.raises(ValueError, match='bare.pth has no config'):
        stored_config(open_checkpoint(str(bare)))
    assert stored_classes(open_checkpoint(str(bare))) is None
    config = str(folder / 'tiny.py')
    assert TokenReductionInferencer(config, bare).classes == list('0123')


def plant(folder, place, config):
    """Write evil.pth and evil.safetensors with a config."""
    loaded = torch.load(folder / 'tiny.pth', weights_only=True)
    loaded['meta']['cfg'] = config
    torch.save(loaded, place / 'evil.pth')
    save_file(
        loaded['state_dict'],
        place / 'evil.safetensors',
        metadata=dict(config=config),
    )


@pytest.fixture
def helper(tmp_path, monkeypatch):
    """Path of a mark written if helper.py is imported."""
    mark = tmp_path / 'ran'
    code = f'open({str(mark)!r}, "w")\nmodel = dict(type="ImageClassifier")\n'
    (tmp_path / 'helper.py').write_text(code)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, 'helper', raising=False)
    return mark


def as_backbone(model):
    backbone = dict(model, type='mmclca.TokenReductionClassifier')
    return dict(backbone, teacher=dict(model='helper.py', checkpoint='x'))


ATTACKS = dict(
    teacher=(as_backbone, "model.backbone.teacher.model='helper.py'"),
    norm_layer=(
        lambda _: dict(
            type='TIMMBackbone',
            model_name='resnet18',
            norm_layer='helper.Norm',
        ),
        "model.backbone.norm_layer='helper.Norm'",
    ),
    conv_type=(
        lambda model: dict(
            model['backbone'], patch_cfg=dict(conv_type='helper')
        ),
        "model.backbone.patch_cfg.conv_type='helper'",
    ),
)


@pytest.mark.parametrize('ending', ['.pth', '.safetensors'])
@pytest.mark.parametrize('attack', ATTACKS)
def test_malicious_config_is_refused_and_not_run(
    folder, tmp_path, helper, attack, ending
):
    config = Config.fromfile(folder / 'tiny.py')
    backbone, message = ATTACKS[attack]
    config.model.backbone = backbone(config.model.to_dict())
    plant(folder, tmp_path, config.pretty_text)
    file = str(tmp_path / f'evil{ending}')
    for load_model in (  # Python and page; tools
        lambda: TokenReductionInferencer(file),
        lambda: TokenReductionInferencer(None, file, 'cpu'),
    ):
        with pytest.raises(ValueError, match='is refused') as error:
            load_model()
        assert message in str(error.value)
        assert '--config CONFIG' in str(error.value)
        assert not helper.exists()


def test_config_is_refused_if_not_plain_settings(folder, tmp_path):
    ran = tmp_path / 'ran'
    call = f"type='os.mkdir', path={str(ran)!r}"
    for text, message in (
        (
            f'import os\nos.mkdir({str(ran)!r})',
            'line 1 is not a setting: import os',
        ),
        (
            f"model = __import__('os').mkdir({str(ran)!r})",
            'line 1 is not a setting',
        ),
        (f'model = dict({call})', "model.type='os.mkdir'"),
        (f'model = [dict({call})]', 'model is not a dict'),
        ('test_dataloader = dict(dataset=[])', 'dataset is not a dict'),
        (
            f'test_dataloader=dict(dataset=dict(pipeline=[dict({call})]))',
            "test_dataloader.dataset.pipeline.type='os.mkdir'",
        ),
    ):
        plant(folder, tmp_path, text)
        with pytest.raises(ValueError, match=re.escape(message)):
            TokenReductionInferencer(tmp_path / 'evil.pth')
        assert not ran.exists()


def test_training_settings_are_ignored(folder, tmp_path):
    config = Config.fromfile(folder / 'tiny.py')
    start = dict(type='Pretrained', checkpoint='http://gone.invalid/a.pth')
    loss = dict(type='mmclca.DeiTDistillation')
    config.model.update(
        type='mmclca.TokenReductionClassifier',
        teacher=dict(model='a.py', checkpoint='b.pth', loss=loss),
        train_cfg=dict(augments=[dict(type='Mixup', alpha=0.8)]),
    )
    config.model.backbone.init_cfg = [start]
    config.val_dataloader = None  # as after train.py --no-validate
    config.dump(tmp_path / 'full.py')
    plant(folder, tmp_path, config.pretty_text)
    read = stored_config(open_checkpoint(str(tmp_path / 'evil.pth')))
    assert {*read} == {
        *('default_scope', 'model', 'data_preprocessor'),
        'test_dataloader',
    }
    assert {*read.model} == {'type', 'backbone', 'head'}
    assert 'init_cfg' not in read.model.backbone
    alone, beside = (
        TokenReductionInferencer(*files, device='cpu').model
        for files in (
            [tmp_path / 'evil.pth'],
            [tmp_path / 'full.py', tmp_path / 'evil.pth'],
        )
    )
    assert fingerprint(alone) == fingerprint(beside)


@pytest.mark.parametrize('name', ['tiny.pth', 'tiny.safetensors'])
@pytest.mark.parametrize('by', ['inferencer', 'tools', '--config'])
def test_file_is_opened_once(folder, name, by, monkeypatch):
    """Config, class names and weights come from one read."""
    opened = []

    def note(path, *arguments, **options):
        opened.append(path)
        return read_checkpoint(path, *arguments, **options)

    read_checkpoint = opening.read_checkpoint
    monkeypatch.setattr(opening, 'read_checkpoint', note)
    file = str(folder / name)
    if by == 'inferencer':
        inferencer = TokenReductionInferencer(file)
    elif by == 'tools':
        inferencer = TokenReductionInferencer(None, file, 'cpu')
    else:
        inferencer = TokenReductionInferencer(str(folder / 'tiny.py'), file)
    assert opened == [file]
    assert tuple(inferencer.classes) == CLASSES


@pytest.mark.parametrize(
    'meta',
    [
        dict(classes=np.array(['ash', 'beech', 'elm', 'oak'])),
        dict(classes=['ash', 'beech', ['elm'] * 2, 'oak']),
        dict(classes=[1, 2, 3, 4]),
        dict(classes=dict.fromkeys(CLASSES)),
        dict(classes='abcd'),
    ],
)
def test_class_names_are_refused_if_not_strings(folder, tmp_path, meta):
    loaded = torch.load(folder / 'tiny.pth', weights_only=True)
    loaded['meta']['dataset_meta'] = meta
    torch.save(loaded, tmp_path / 'evil.pth')
    with pytest.raises(ValueError, match='evil.pth: class names'):
        TokenReductionInferencer(tmp_path / 'evil.pth')


@pytest.mark.parametrize('meta', [None, 3, dict(dataset_meta=[1], cfg=2)])
def test_invalid_meta_has_no_config_or_classes(folder, tmp_path, meta):
    loaded = torch.load(folder / 'tiny.pth', weights_only=True)
    torch.save(dict(loaded, meta=meta), tmp_path / 'odd.pth')
    opened = open_checkpoint(str(tmp_path / 'odd.pth'))
    assert stored_classes(opened) is stored_text(opened) is None
