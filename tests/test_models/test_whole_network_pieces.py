# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""The pieces of CaiT, ResMLP and PatchConvNet, and timm's models of them."""

import re

import pytest
import timm
import torch
from every_config import FOLDER as CONFIGS
from every_config import piece, read
from tiny_run import ROOT
from torch.overrides import TorchFunctionMode

from mmclca.registry import MODELS

FOLDER = CONFIGS / '_base_/models'
RELEASES = 'https://dl.fbaipublicfiles.com/deit/'
KINDS = 'cait|resmlp|patchconvnet'
ROW = re.compile(
    rf'\| `(\S+\.pth)` \| (?:`(\S+)` )?\| `((?:{KINDS})-\S+)` \| (\d+) \|'
)
RELEASED = [
    match.groups()
    for match in ROW.finditer((ROOT / 'docs/weights.md').read_text())
]
OF_TIMM = [row for row in RELEASED if row[1]]
NAMES = sorted(
    path.stem for kind in KINDS.split('|') for path in FOLDER.glob(f'{kind}-*')
)
# what load_from is: the first row of each piece
WEIGHTS = {
    name: f'timm://{of_timm}' if of_timm else RELEASES + file
    for file, of_timm, name, _ in reversed(RELEASED)
}
FIRST = {  # those of timm
    name: weights.removeprefix('timm://')
    for name, weights in WEIGHTS.items()
    if weights.startswith('timm')
}
QUICK = (
    'cait-b12-p16',
    'cait-xxs24-p16',
    'resmlp-s12-p16',
    'patchconvnet-s20',
)
# drop path and initial LayerScale of the thesis; it has no rate for cait-b12,
# ResMLP, l60 and l120, and no value for s20, s36 and b36
SETTINGS = {
    'cait-xxs24': (0.05, 1e-5),
    'cait-xxs36': (0.1, 1e-6),
    'cait-xs24': (0.05, 1e-5),
    'cait-xs36': (0.1, 1e-6),
    'cait-s24': (0.1, 1e-5),
    'cait-s36': (0.2, 1e-6),
    'cait-s48': (0.3, 1e-6),
    'cait-m24': (0.2, 1e-5),
    'cait-m36': (0.3, 1e-6),
    'cait-m48': (0.4, 1e-6),
    'cait-b12': (0.1, 0.1),
    'resmlp-s12': (0.1, 0.1),
    'resmlp-s24': (0.1, 1e-5),
    'resmlp-s36': (0.1, 1e-6),
    'resmlp-b24': (0.1, 1e-5),
    'patchconvnet-s20': (0.0, 1e-4),
    'patchconvnet-s36': (0.05, 1e-4),
    'patchconvnet-s60': (0.15, 1e-4),
    'patchconvnet-s120': (0.2, 1e-6),
    'patchconvnet-b36': (0.2, 1e-6),
    'patchconvnet-b60': (0.3, 1e-6),
    'patchconvnet-b120': (0.4, 1e-6),
    'patchconvnet-l60': (0.3, 1e-6),
    'patchconvnet-l120': (0.4, 1e-6),
}


def settings_of(name):
    return SETTINGS['-'.join(name.split('-')[:2])]


def shallow(name):
    """The settings of a piece, for one layer."""
    model = piece(f'models/{name}')['model']
    backbone = model['backbone']
    sizes = MODELS.get(backbone['type']).arch_zoo[backbone['arch']]
    backbone['arch'] = dict(sizes, num_layers=1)
    return model


def built(model):
    with torch.device('meta'):
        return MODELS.build(model)


def test_docs_list_every_model_of_timm_and_every_piece():
    names = {name for _, name, _, _ in OF_TIMM}
    assert names == {
        name
        for kind in ('cait*', 'resmlp*')
        for name in timm.list_pretrained(kind)
    }
    assert not timm.list_pretrained('*patchconv*')
    docs = (ROOT / 'docs/weights.md').read_text()
    assert all(f'`{name}`' in docs for name in NAMES)
    assert WEIGHTS.keys() < {*NAMES}


@pytest.mark.parametrize('file, name, stem, size', OF_TIMM)
def test_names_of_the_release(file, name, stem, size):
    """One file and size under each of timm's names, one width a piece."""
    cfg = timm.get_pretrained_cfg(name)
    assert (cfg.url, cfg.input_size[1]) == (RELEASES + file, int(size))
    one, other = (
        re.sub(r'_\d+$', '', timm.get_pretrained_cfg(n).architecture)
        for n in (name, FIRST[stem])
    )
    assert one == other


@pytest.mark.parametrize('name', NAMES)
def test_first_lines_and_weights(name):
    lines = (FOLDER / f'{name}.py').read_text().splitlines()
    assert lines[0].startswith('# Copyright') and lines[1].startswith('# ')
    cfg = read(FOLDER / f'{name}.py')
    assert cfg.load_from == WEIGHTS.get(name)
    first = (int(px) for _, _, stem, px in RELEASED if stem == name)
    assert cfg.model.backbone.img_size == next(first, 224)


def some_slow(names, quick):
    return [
        pytest.param(name, marks=() if name in quick else pytest.mark.slow)
        for name in names
    ]


def first_block(model):
    """Its weights, without those of the other blocks."""
    others = re.compile(r'blocks\.[1-9]')
    weights = model.state_dict().items()
    return {name: value for name, value in weights if not others.match(name)}


@pytest.mark.parametrize('name', some_slow(FIRST, QUICK))
def test_every_parameter_of_timm_has_its_place(name):
    """Names and shapes, and what no shape shows: heads and eps.

    Of one layer; their number is in test_whole_network_costs.py.
    """
    here = built(shallow(name))
    of_cait = dict(depth=1) if name.startswith('cait') else {}
    with torch.device('meta'):
        there = timm.create_model(FIRST[name], **of_cait)
    keys = here.load_state_dict(first_block(there), strict=True)
    assert not keys.missing_keys and not keys.unexpected_keys
    layer, block = here.backbone.layers[0], there.blocks[0]
    if of_cait:
        assert layer.attn.num_heads == block.attn.num_heads
        assert layer.ln2.eps == block.norm2.eps == there.norm.eps
        assert here.backbone.ln1.eps == there.norm.eps


# branches of a layer, layers of class attention
LAYERS = dict(cait=(2, 2), resmlp=(2, 0), patchconvnet=(1, 1))


class OnesOnCPU(TorchFunctionMode):
    """LayerScale, made of ones, has values even on the meta device."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = dict(kwargs or {})
        if func is torch.ones:
            kwargs['device'] = 'cpu'
        return func(*args, **kwargs)


@pytest.mark.parametrize('name', some_slow(NAMES, QUICK))
def test_initial_layer_scale(name):
    """The same in all layers, those of class attention among them."""
    model = piece(f'models/{name}')['model']
    with torch.device('meta'), OnesOnCPU():
        backbone = MODELS.build(model).backbone
    scales = [v for k, v in backbone.named_parameters() if 'gamma' in k]
    branches, class_layers = LAYERS[name.split('-')[0]]
    number = branches * len(backbone.layers) + 2 * class_layers
    _, value = settings_of(name)
    assert len(scales) == number
    assert all((scale == value).all() for scale in scales)


@pytest.mark.parametrize('name', NAMES)
def test_rates_of_stochastic_depth(name):
    rate, _ = settings_of(name)
    assert read(FOLDER / f'{name}.py').model.backbone.drop_path_rate == rate
