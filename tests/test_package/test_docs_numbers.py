# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Numbers, options and config examples in the documentation."""

import re
import shlex
from types import SimpleNamespace

import pytest
import torch
from mmengine.config import Config
from mmpretrain.registry import HOOKS
from tiny_run import ROOT

from mmclca.cli import Parser
from mmclca.evaluation.cost import count
from mmclca.registry import MODELS

CONFIGS = ROOT / 'configs/clca'
PAPER = CONFIGS / 'clca-evit-kr10_vit-base-p16_1xb32-50e_cotton80-448px.py'
CUSTOM = CONFIGS / 'clca-evit-kr25_deit-tiny-p16_1xb32-50e_custom-224px.py'
# keys that only an option adds to a config
NEW_KEYS = (
    'sync_bn',
    'optim_wrapper.accumulative_counts',
    'optim_wrapper.clip_grad.max_norm',
)


def text_of(page):
    return (ROOT / page).read_text(encoding='utf-8')


def counted(keep_rate):
    """Count tokens per column and GMACs; None means no reduction."""
    model = Config.fromfile(PAPER).model
    if keep_rate is None:
        model.backbone.update(reducer=None, cache=None)
    else:
        model.backbone.reducer.keep_rate = keep_rate
    with torch.device('meta'):
        cost = count(MODELS.build(model))
    tokens = [str(cost.tokens[layer]) for layer in (2, 3, 5, 6, 8, 9, 10, 11)]
    return [*tokens, f'{cost.flops / 1e9:.2f}']


def test_tokens_and_gmacs_in_how_it_works_are_counted():
    text, _, table = text_of('docs/how_it_works.md').partition('## Cost')
    rows = re.findall(r'^\| (all tokens|[\d.]+)[^|]*\|(.+)\|$', table, re.M)
    assert len(rows) == 5
    for rate, cells in rows[::2]:  # a sample, as each takes 0.2 s
        keep_rate = None if rate == 'all tokens' else float(rate)
        assert re.findall(r'[\d.]+', cells) == counted(keep_rate), rate
    for number in counted(0.25)[:6]:
        assert re.search(rf'\b{number}\b', text)


def options_of(heading):
    """Return the options in a table in docs/configs.md, one dict per row."""
    _, _, after = text_of('docs/configs.md').partition(f'### {heading}\n')
    table, _, _ = after.partition('\n\n#')
    rows = re.findall(r'^\| .+ \| `(.+)` \|$', table, re.M)
    parser = Parser()
    parser.share('--cfg-options')
    words = (shlex.split(row) for row in rows)
    return [
        parser.parse_args(['--cfg-options', *row]).cfg_options for row in words
    ]


@pytest.mark.parametrize('options', options_of('The model'))
def test_documented_model_option_builds_a_model(options):
    config = Config.fromfile(CUSTOM)
    before = config.model.to_dict()
    config.merge_from_dict(options)
    assert config.model.to_dict() != before
    with torch.device('meta'):
        MODELS.build(config.model)


def test_documented_training_options_exist():
    found = [key for row in options_of('The training') for key in row]
    assert len(found) > 14
    config = Config.fromfile(PAPER)
    for key in set(found) - set(NEW_KEYS):
        value = config
        *parents, last = key.split('.')
        for part in parents:
            value = value[int(part)] if part.isdigit() else value[part]
        assert last in value or key.startswith('default_hooks.checkpoint')


def test_example_config_in_extending_builds(tmp_path):
    """Build the model with the base configs on the page."""
    for folder in ('models', 'datasets', 'schedules', 'teachers'):
        (tmp_path / f'configs/_base_/{folder}').mkdir(parents=True)
    for path in (ROOT / 'configs/_base_').rglob('*.py'):
        if path.parent.name not in ('speed', 'sweeps'):
            copy = tmp_path / path.relative_to(ROOT)
            copy.write_text(path.read_text())
    (tmp_path / 'configs/clca').mkdir()
    blocks = re.findall(
        r'```py\n# (configs/\S+)\n(.*?)```', text_of('docs/extending.md'), re.S
    )
    for name, text in blocks:
        (tmp_path / name).write_text(text)
    config = Config.fromfile(tmp_path / blocks[-1][0])
    assert config.train_dataloader.dataset.ann_file == 'train.txt'
    assert config.model.head.num_classes == 12
    with torch.device('meta'):
        cost = count(MODELS.build(config.model))
    assert cost.tokens[7] < cost.tokens[6] and len(cost.tokens) == 24


@pytest.fixture
def own_hooks(monkeypatch):
    """Hook registry, restored after the test."""
    known = {k: v for k, v in HOOKS.module_dict.items() if k != 'HeadFirst'}
    monkeypatch.setattr(HOOKS, '_module_dict', known)
    return HOOKS


def test_example_hook_in_extending_freezes_backbone(
    tmp_path, monkeypatch, own_hooks
):
    page = text_of('docs/extending.md')
    hook = re.search(r'```python\n(.*?)```', page, re.S)[1]
    config = re.search(r"```py\n(_base_ = '\./.*?)```", page, re.S)[1]
    (tmp_path / 'head_first.py').write_text(hook)
    path = tmp_path / 'own.py'
    path.write_text(config.replace('./configs', str(ROOT / 'configs')))
    monkeypatch.syspath_prepend(tmp_path)
    inherited, own = Config.fromfile(path).custom_hooks
    assert inherited.type == 'mmclca.ClassCountHook'
    backbone = torch.nn.Linear(2, 2)
    runner = SimpleNamespace(model=SimpleNamespace(backbone=backbone))
    for runner.epoch, trains in ((0, False), (4, False), (5, True)):
        own_hooks.build(own).before_train_epoch(runner)
        assert backbone.weight.requires_grad == trains
