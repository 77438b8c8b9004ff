# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Base configs from Touvron's thesis and Three things, and timm's models.

DeiT, DeiT III, parallel ViTs, CaiT, ResMLP and PatchConvNet.
"""

import csv
import re

import pytest
import timm
import torch
from every_config import FOLDER as CONFIGS
from every_config import piece, read
from safetensors.torch import save_file
from tiny_run import ROOT
from torch.overrides import TorchFunctionMode

from mmclca.checkpoints.load import load
from mmclca.registry import MODELS
from mmclca.utils.meta_device import on_meta_device

FOLDER = CONFIGS / '_base_/models'
RELEASES = 'https://dl.fbaipublicfiles.com/deit/'
with (ROOT / 'docs/weights.csv').open(newline='') as table:
    RELEASED = [
        (row['file'], row['timm'], row['config'], row['px'])
        for row in csv.DictReader(table)
    ]
OF_TIMM = [row for row in RELEASED if row[1]]
FIRST = {  # timm's name in the first row of each config
    piece: name for _, name, piece, _ in reversed(OF_TIMM)
}
# load_from: the first row of each config
WEIGHTS = {
    name: f'timm://{of_timm}' if of_timm else RELEASES + file
    for file, of_timm, name, _ in reversed(RELEASED)
}
# initial LayerScale: thesis, chapters 3 to 7, by depth; Three things, section
# 3, none
SCALES = {
    'deit-tiny-distilled-p16': 0,
    'deit3-base-p16': 1e-4,
    'deit3-huge-26x2-p14': 1e-4,
    'par-vit-small-18x2-p16': 0,
    'cait-b12-p16': 0.1,
    'cait-xxs24-p16': 1e-5,
    'resmlp-s12-p16': 0.1,
    'resmlp-s36-p16': 1e-6,
    'patchconvnet-s20': 1e-4,
}
KINDS = ('cait', 'deit', 'par-vit', 'patchconvnet', 'resmlp')
NAMES = sorted(path.stem for kind in KINDS for path in FOLDER.glob(f'{kind}*'))
VITS = [name for name in NAMES if name.startswith(('deit', 'par-vit'))]
NEW = [name for name in NAMES if name in FIRST]
# other configs have layers that are slow to build
QUICK = ('cait-xxs24-p16', 'resmlp-s12-p16', *VITS)
SMALL = dict(embed_dim=16, depth=2, num_heads=2)
ARCH = dict(embed_dims=16, num_layers=2, num_heads=2, feedforward_channels=64)


def built(model):
    with on_meta_device():
        return MODELS.build(model)


def shallow(name):
    """Model of a config, reduced to one layer."""
    model = piece(f'models/{name}')['model']
    backbone = model['backbone']
    if name in VITS:
        backbone['depth'] = 1
    else:
        sizes = MODELS.get(backbone['type']).arch_zoo[backbone['arch']]
        backbone['arch'] = dict(sizes, num_layers=1)
    return model


def test_docs_name_file_size_and_architecture_of_timm():
    for file, name, stem, size in OF_TIMM:
        cfg = timm.get_pretrained_cfg(name)
        assert (cfg.url, cfg.input_size[1]) == (RELEASES + file, int(size))
        one, other = (
            re.sub(r'_\d+$', '', timm.get_pretrained_cfg(n).architecture)
            for n in (name, FIRST[stem])
        )
        assert one == other


@pytest.mark.parametrize('name', NAMES)
def test_config_sets_weights_and_size(name):
    cfg = read(FOLDER / f'{name}.py')
    assert cfg.load_from == WEIGHTS.get(name)
    first = (int(px) for _, _, stem, px in RELEASED if stem == name)
    assert cfg.model.backbone.get('img_size', 224) == next(first, 224)


def first_block(model):
    """Weights without blocks after the first."""
    others = re.compile(r'blocks\.[1-9]')
    weights = model.state_dict().items()
    return {name: value for name, value in weights if not others.match(name)}


@pytest.mark.parametrize(
    'name',
    [
        pytest.param(name, marks=[pytest.mark.slow] * (name not in QUICK))
        for name in NEW
    ],
)
def test_parameters_heads_and_eps_equal_timm(name):
    here = built(shallow(name))
    options = {} if name.startswith('resmlp') else dict(depth=1)
    if name in VITS:
        # the distilled ones of early timm refuse it
        options.update({} if 'distilled' in name else dict(weight_init='skip'))
    with on_meta_device():
        there = timm.create_model(FIRST[name], **options)
    keys = here.load_state_dict(first_block(there), strict=True)
    assert not keys.missing_keys and not keys.unexpected_keys
    if options:
        layer, block = here.backbone.layers[0], there.blocks[0]
        assert layer.attn.num_heads == block.attn.num_heads
        assert layer.ln2.eps == block.norm2.eps == there.norm.eps
        assert here.backbone.ln1.eps == there.norm.eps
    if name in VITS:
        assert here.backbone.stride == there.patch_embed.patch_size


class OnesOnCPU(TorchFunctionMode):
    """Keep the values of LayerScale, made by ``ones``, on the CPU."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = dict(kwargs or {})
        if func is torch.ones:
            kwargs['device'] = 'cpu'
        return func(*args, **kwargs)


# branches of a layer, layers of class attention
LAYERS = dict(cait=(2, 2), resmlp=(2, 0), patchconvnet=(1, 1))


@pytest.mark.parametrize('name, value', SCALES.items())
def test_initial_layer_scale_in_all_layers(name, value):
    whole = name not in VITS
    model = piece(f'models/{name}')['model'] if whole else shallow(name)
    with torch.device('meta'), OnesOnCPU():
        backbone = MODELS.build(model).backbone
    scales = [v for k, v in backbone.named_parameters() if 'gamma' in k]
    parallel = 4 if 'x2-' in name else 2
    branches, pooling = LAYERS.get(name.split('-')[0], (parallel, 0))
    number = branches * len(backbone.layers) + 2 * pooling
    assert len(scales) == (number if value else 0)
    assert all((scale == value).all() for scale in scales)


@pytest.mark.parametrize('name', [name for name in VITS if 'x2' in name])
def test_name_gives_number_of_branches(name):
    shape = re.search(r'-(\d+)x(\d+)-', name)
    backbone = read(FOLDER / f'{name}.py').model.backbone
    found = (str(backbone.arch.num_layers), str(backbone.branches))
    assert found == shape.groups()


def release(there):
    """Weights of a timm model with the names in DeiT III's release."""
    weights = there.state_dict()
    return {
        'model': {
            re.sub(r'ls([12])\.gamma', r'gamma_\1', key): value
            for key, value in weights.items()
        }
    }


@pytest.mark.parametrize('name', [name for name in VITS if name in NEW])
def test_logits_equal_timm(name, tmp_path):
    side = int(name[-2:])
    there = timm.create_model(
        FIRST[name], num_classes=5, img_size=4 * side, **SMALL
    )
    for parameter in there.parameters():
        parameter.data.add_(0.2 * torch.randn_like(parameter))
    there = there.double().eval()
    files = (tmp_path / 'release.pth', tmp_path / 'timm.safetensors')
    torch.save(release(there), files[0])
    save_file(there.state_dict(), files[1])
    for size, path in zip((4 * side, 6 * side), files, strict=True):
        model = piece(f'models/{name}')['model']
        model['backbone'].update(arch=ARCH, img_size=size)
        model['head'].update(in_channels=16, num_classes=5)
        here = MODELS.build(model).double().eval()
        load(here, str(path))
        there.set_input_size(size)
        x = torch.randn(1, 3, size, size, dtype=torch.float64)
        with torch.no_grad():
            assert (here(x) - there.double()(x)).abs().max() < 1e-9
