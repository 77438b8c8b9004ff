# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Numbers, options and names of configs that the documentation states."""

import csv
import re
import shlex
from collections import Counter
from types import SimpleNamespace

import pytest
import torch
from mmengine.config import Config
from mmpretrain.registry import HOOKS
from tiny_run import ROOT

from mmclca.cli import Parser
from mmclca.datasets.ultra_fgvc.info import get_info
from mmclca.evaluation.cost import count
from mmclca.registry import MODELS
from mmclca.sweep.grid import read_grid

CONFIGS = ROOT / 'configs/clca'
PAPER = CONFIGS / 'clca-evit-kr10_vit-base-p16_1xb32-50e_cotton80-448px.py'
CUSTOM = CONFIGS / 'clca-evit-kr25_deit-tiny-p16_1xb32-50e_custom-224px.py'
# settings that no config has until an option adds them
NEW_KEYS = (
    'sync_bn',
    'optim_wrapper.accumulative_counts',
    'optim_wrapper.clip_grad.max_norm',
)


def text_of(page):
    return (ROOT / page).read_text(encoding='utf-8')


def counted(keep_rate):
    """Tokens of the columns of a row, and GMACs; None: no reduction."""
    model = Config.fromfile(PAPER).model
    if keep_rate is None:
        model.backbone.update(reducer=None, cache=None)
    else:
        model.backbone.reducer.keep_rate = keep_rate
    with torch.device('meta'):
        cost = count(MODELS.build(model))
    tokens = [str(cost.tokens[layer]) for layer in (2, 3, 5, 6, 8, 9, 10, 11)]
    return [*tokens, f'{cost.flops / 1e9:.2f}']


def test_numbers_of_how_it_works():
    text, _, table = text_of('docs/how_it_works.md').partition('## Cost')
    rows = re.findall(r'^\| (all tokens|[\d.]+)[^|]*\|(.+)\|$', table, re.M)
    assert len(rows) == 5
    for rate, cells in rows:
        keep_rate = None if rate == 'all tokens' else float(rate)
        assert re.findall(r'[\d.]+', cells) == counted(keep_rate), rate
    for number in counted(0.25)[:6]:
        assert re.search(rf'\b{number}\b', text)


def rows_of_methods():
    """Method, keep rate, size and both GMACs in docs/methods/costs.csv."""
    with (ROOT / 'docs/methods/costs.csv').open(newline='') as file:
        for row in csv.DictReader(file):
            plain, clca = float(row['gmacs']), float(row['gmacs_clca'])
            key = float(row['keep_rate']), int(row['img_size'])
            yield row['method'].lower(), *key, plain, clca


def gmacs_of_methods():
    """The same by method, keep rate, size, and which of CLC and CLA.

    Of these the head alone costs less than is seen in the tables.
    """
    gmacs = {}
    for method, rate, size, plain, clca in rows_of_methods():
        costs = dict(base=plain, cla=plain, clc=clca, clca=clca)
        for part, cost in costs.items():
            gmacs[method, rate, size, part] = cost
    return gmacs


@pytest.mark.parametrize('name', ['table_1', 'fig_1', 'fig_3', 'fig_4'])
def test_costs_of_reproducing(name):
    """Three forward passes of the images of 50 epochs, in batches of 32."""
    gmacs, total = gmacs_of_methods(), 0
    cells = read_grid(ROOT / f'configs/sweeps/{name}.py').cells
    for cell in cells:
        images = get_info(cell.dataset).counts['trainval'] // 32 * 32 * 50
        key = (cell.method.lower(), cell.keep_rate, cell.size, cell.clca)
        total += 3 * images * gmacs[key] / 1e6
    row = re.search(
        rf'sweeps/{name}\.py` \| (\S+) \| (\S+) \| (\d+) (\w+) \|',
        text_of('docs/reproducing.md').replace(',', ''),
    )
    assert int(row[1]) == len(cells)
    assert float(row[2]) == pytest.approx(total, rel=5e-4, abs=0.5)
    seconds = dict(min=60, h=3600, days=86400)[row[4]] * int(row[3])
    assert seconds == pytest.approx(total * 1e15 / 50e12, rel=0.05)


def options_of(heading):
    """The options of a table of docs/configs.md, a list a row."""
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
def test_options_of_a_model(options):
    config = Config.fromfile(CUSTOM)
    before = config.model.to_dict()
    config.merge_from_dict(options)
    assert config.model.to_dict() != before
    with torch.device('meta'):
        MODELS.build(config.model)


def test_options_of_a_training():
    found = [key for row in options_of('The training') for key in row]
    assert len(found) > 14
    config = Config.fromfile(PAPER)
    for key in set(found) - set(NEW_KEYS):
        value = config
        *parents, last = key.split('.')
        for part in parents:
            value = value[int(part)] if part.isdigit() else value[part]
        assert last in value or key.startswith('default_hooks.checkpoint')


def test_every_tool_is_named():
    """And no other; that its flags exist is seen with all commands."""
    tools = {
        str(path.relative_to(ROOT))
        for path in (ROOT / 'tools').rglob('*')
        if path.suffix in ('.py', '.sh')
        and not {'dev', 'research'} & {*path.parts}
    }
    named = re.findall(r'tools/[\w/]+\.(?:py|sh)', text_of('docs/tools.md'))
    assert set(named) == tools
    assert Counter(named).most_common(1)[0][1] <= 2  # two of analyze_logs


def test_configs_of_extending(tmp_path):
    """The pieces and the config of the page build a model and name data."""
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
    """A registry of hooks that forgets what a test puts into it."""
    known = {k: v for k, v in HOOKS.module_dict.items() if k != 'HeadFirst'}
    monkeypatch.setattr(HOOKS, '_module_dict', known)
    return HOOKS


def test_hook_of_extending(tmp_path, monkeypatch, own_hooks):
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
