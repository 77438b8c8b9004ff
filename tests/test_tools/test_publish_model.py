# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import hashlib
import json
import re

import pytest
import safetensors.torch
import torch
from mmengine.config import Config
from mmpretrain import get_model
from safetensors import safe_open
from tiny_model import write_tiny
from tiny_run import CLASSES, ROOT, run_tool, write_run

from mmclca.apis.loading import build_classifier
from mmclca.engine.runner import SafeRunner

TOOL = ROOT / 'tools/model_converters/publish_model.py'


@pytest.fixture
def run(trained):
    """Work dir of a training run with EMA."""
    return trained / 'work_dirs' / 'tiny'


@pytest.fixture
def publish(monkeypatch, tmp_path):
    """Run the tool; return files by suffix."""

    def publish(in_file, name='leaf', *words):
        out = tmp_path / 'out'
        out.mkdir(exist_ok=True)
        run_tool(monkeypatch, TOOL, in_file, out / name, *words)
        return {path.suffix: path for path in out.iterdir()}

    return publish


@pytest.fixture
def tiny(tmp_path):
    """Checkpoint without optimizer state and EMA, next to tiny.py."""
    write_tiny(tmp_path)
    return tmp_path / 'tiny.pth'


def logits(model):
    torch.manual_seed(0)
    with torch.inference_mode():
        return model.eval()(torch.randn(2, 3, 32, 32))


def test_published_files_have_hash_config_and_classes(run, publish, capsys):
    files = publish(run / 'epoch_2.pth')
    assert sorted(files) == ['.pth', '.safetensors']
    said = capsys.readouterr().out
    for ending, path in files.items():
        name = re.fullmatch(rf'leaf_\d{{8}}-(\w{{8}})\{ending}', path.name)
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        assert digest.startswith(name[1])
        assert f'{path} ({path.stat().st_size / 1e6:.2f} MB)' in said
        before = (run / 'epoch_2.pth').stat().st_size
        assert path.stat().st_size < before / 3
    slim = torch.load(files['.pth'], weights_only=True)
    assert set(slim) == {'meta', 'state_dict'}
    assert slim['meta']['dataset_meta'] == dict(classes=CLASSES)
    with safe_open(files['.safetensors'], 'pt') as file:
        metadata = file.metadata()
    assert json.loads(metadata['classes']) == list(CLASSES)
    whole = Config.fromfile(run / 'config.py').to_dict()
    for text in (slim['meta']['cfg'], metadata['config']):
        stored = Config.fromstring(text, '.py').to_dict()
        assert stored['model'] == whole['model']


def test_ema_weights_are_published_by_default(run, publish, capsys):
    checkpoint = torch.load(run / 'epoch_2.pth', weights_only=False)
    average = checkpoint['state_dict']['head.fc.weight']
    trained = checkpoint['ema_state_dict']['module.head.fc.weight']
    assert not torch.equal(average, trained)
    for words, wanted in (((), average), (('--no-ema',), trained)):
        publish(run / 'epoch_2.pth', f'ema{len(words)}.safetensors', *words)
        path = capsys.readouterr().out.split()[-3]
        weights = safetensors.torch.load_file(path)
        assert torch.equal(weights['head.fc.weight'], wanted)


def test_published_files_give_the_same_logits(run, publish, tmp_path):
    config = Config.fromfile(write_run(tmp_path))
    config.work_dir = str(tmp_path / 'work')
    wanted = logits(get_model(config, pretrained=str(run / 'epoch_2.pth')))
    assert not torch.equal(wanted, logits(get_model(config)))
    for path in publish(run / 'epoch_2.pth').values():
        model = build_classifier(config, str(path))
        assert torch.equal(logits(model), wanted)
        config.load_from = str(path)
        runner = SafeRunner.from_cfg(config)
        runner.load_or_resume()
        assert torch.equal(logits(runner.model), wanted)


def test_config_and_classes_are_added_to_bare_weights(
    tiny, tmp_path, publish, capsys
):
    weights = torch.load(tiny)['state_dict']
    torch.save(dict(weights), tmp_path / 'bare.pth')
    bare = publish(tmp_path / 'bare.pth', 'bare.pth')['.pth']
    said = capsys.readouterr().err
    assert '--config' in said and '--dataset-type' in said
    assert set(torch.load(bare)['meta']) == {
        'mmclca_version',
        'mmpretrain_version',
    }
    words = ('--config', tiny.with_suffix('.py'), '--dataset-type', 'CIFAR10')
    whole = publish(tmp_path / 'bare.pth', 'whole.safetensors', *words)
    with safe_open(whole['.safetensors'], 'pt') as file:
        metadata = file.metadata()
    assert len(json.loads(metadata['classes'])) == 10
    assert Config.fromstring(metadata['config'], '.py').model.head
    assert '--config' not in capsys.readouterr().err


def test_existing_file_is_not_replaced(tiny, publish):
    (path,) = publish(tiny, 'leaf.pth').values()
    before = path.read_bytes()
    with pytest.raises(FileExistsError, match='already exists'):
        publish(tiny, 'leaf.pth')
    assert path.read_bytes() == before
