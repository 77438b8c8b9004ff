# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import sys

import numpy as np
import pytest
import torch
from mmengine.config import Config
from safetensors.torch import save_file
from tiny_run import CLASSES

from mmclca.apis import TokenReductionInferencer
from mmclca.checkpoints import opening
from mmclca.checkpoints.gate.stored_config import (
    get_stored_text,
    read_stored_classes,
    read_stored_config,
)
from mmclca.checkpoints.opening import open_checkpoint
from mmclca.evaluation.open_set import fingerprint


@pytest.mark.parametrize('name', ['tiny.pth', 'tiny.safetensors'])
def test_config_and_classes_are_read(tiny, name):
    checkpoint = open_checkpoint(str(tiny / name))
    config = Config.fromfile(tiny / 'tiny.py')
    read = read_stored_config(checkpoint).to_dict()
    assert {'model', 'test_dataloader'} <= {*read}
    assert 'optim_wrapper' not in read
    dataset = read.pop('test_dataloader')['dataset']
    assert dataset['pipeline'] == config.test_dataloader.dataset.pipeline
    assert {*dataset} == {'type', 'pipeline'}
    assert all(part == config[name] for name, part in read.items())
    assert tuple(read_stored_classes(checkpoint)) == CLASSES


def test_bare_weights_have_no_config(tiny, tmp_path):
    bare = str(tmp_path / 'bare.pth')
    loaded = torch.load(tiny / 'tiny.pth', weights_only=True)
    torch.save(loaded['state_dict'], bare)
    with pytest.raises(ValueError, match='bare.pth has no config'):
        read_stored_config(open_checkpoint(bare))
    assert read_stored_classes(open_checkpoint(bare)) is None
    config = str(tiny / 'tiny.py')
    assert TokenReductionInferencer(config, bare).classes == list('0123')


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


TIMM = dict(type='TIMMBackbone', model_name='a', norm_layer='helper.Norm')
ATTACKS = dict(  # changed backbone, and the reported setting
    teacher=(
        dict(
            type='mmclca.TokenReductionClassifier',
            teacher=dict(model='helper.py', checkpoint='x'),
        ),
        "model.backbone.teacher.model='helper.py'",
    ),
    norm_layer=(TIMM, "model.backbone.norm_layer='helper.Norm'"),
    conv_type=(
        dict(patch_cfg=dict(conv_type='helper')),
        "model.backbone.patch_cfg.conv_type='helper'",
    ),
)


@pytest.mark.parametrize('ending', ['.pth', '.safetensors'])
@pytest.mark.parametrize('attack', ATTACKS)
def test_malicious_config_is_refused_and_not_run(
    tiny, change, helper, attack, ending
):
    config = Config.fromfile(tiny / 'tiny.py')
    changes, message = ATTACKS[attack]
    config.model.backbone.update(changes)
    file = change(text := config.pretty_text)
    if ending == '.safetensors':
        file = file.replace('.pth', ending)
        save_file({'a': torch.ones(1)}, file, metadata=dict(config=text))
    for load_model in (  # Python and page; tools
        lambda: TokenReductionInferencer(file),
        lambda: TokenReductionInferencer(None, file, 'cpu'),
    ):
        with pytest.raises(ValueError, match='is refused') as error:
            load_model()
        assert message in str(error.value)
        assert '`config`' in str(error.value)
        assert not helper.exists()


def test_config_is_refused_if_not_plain_settings(change, tmp_path):
    ran = tmp_path / 'ran'
    call = f"type='os.mkdir', path={str(ran)!r}"
    for text, message in (
        (f'import os\nos.mkdir({str(ran)!r})', 'line 1 .*: import os'),
        (f"model = __import__('os').mkdir({str(ran)!r})", 'line 1 is'),
        (f'model = dict({call})', "model.type='os.mkdir'"),
        (f'model = [dict({call})]', 'model is not a dict'),
        ('test_dataloader = dict(dataset=[])', 'dataset is not a dict'),
        (
            f'test_dataloader=dict(dataset=dict(pipeline=[dict({call})]))',
            "test_dataloader.dataset.pipeline.type='os.mkdir'",
        ),
    ):
        with pytest.raises(ValueError, match=message):
            TokenReductionInferencer(change(text))
        assert not ran.exists()


def test_training_settings_are_ignored(tiny, change, tmp_path):
    config = Config.fromfile(tiny / 'tiny.py')
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
    path = change(config.pretty_text)
    read = read_stored_config(open_checkpoint(path))
    assert {*read} == {
        *('default_scope', 'model', 'data_preprocessor', 'test_dataloader')
    }
    assert {*read.model} == {'type', 'backbone', 'head'}
    assert 'init_cfg' not in read.model.backbone
    alone, beside = (
        TokenReductionInferencer(*files, device='cpu').model
        for files in ([path], [tmp_path / 'full.py', path])
    )
    assert fingerprint(alone) == fingerprint(beside)


@pytest.mark.parametrize(
    'config, name', [(None, 'tiny.pth'), ('tiny.py', 'tiny.safetensors')]
)
def test_file_is_opened_once(tiny, config, name, monkeypatch):
    """Config, class names and weights come from one read."""
    opened, read_checkpoint = [], opening.read_checkpoint

    def note(path, *arguments, **options):
        opened.append(path)
        return read_checkpoint(path, *arguments, **options)

    monkeypatch.setattr(opening, 'read_checkpoint', note)
    config, file = config and str(tiny / config), str(tiny / name)
    inferencer = TokenReductionInferencer(config, file)
    assert opened == [file]
    assert tuple(inferencer.classes) == CLASSES


@pytest.mark.parametrize(
    'classes',
    [
        np.array(['ash', 'beech', 'elm', 'oak']),
        ['ash', 'beech', ['elm'] * 2, 'oak'],
        [1, 2, 3, 4],
        dict.fromkeys(CLASSES),
        'abcd',
    ],
)
def test_class_names_are_refused_if_not_strings(change, classes):
    with pytest.raises(ValueError, match='evil.pth: class names'):
        TokenReductionInferencer(change(dataset_meta=dict(classes=classes)))


@pytest.mark.parametrize('meta', [None, 3, dict(dataset_meta=[1], cfg=2)])
def test_invalid_meta_has_no_config_or_classes(meta, tmp_path):
    torch.save(dict(state_dict={}, meta=meta), tmp_path / 'odd.pth')
    opened = open_checkpoint(str(tmp_path / 'odd.pth'))
    assert read_stored_classes(opened) is get_stored_text(opened) is None
