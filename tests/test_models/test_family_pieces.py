# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""The pieces of DeiT, DeiT III and Three things, and timm's models of them."""

import re

import pytest
import timm
import torch
from every_config import FOLDER as CONFIGS
from every_config import piece, read
from mmengine.config import Config
from mmengine.runner import load_checkpoint
from safetensors.torch import save_file
from tiny_run import ROOT

from mmclca.models import with_reduction
from mmclca.registry import MODELS
from mmclca.sweep import pieces

FOLDER = CONFIGS / '_base_/models'
ROW = re.compile(
    r'\| `(deit_\S+\.pth)` \| `(\S+)` \| `(\S+)` \| (\d+) \| .* \|'
)
RELEASED = [
    match.groups()
    for match in ROW.finditer((ROOT / 'docs/weights.md').read_text())
]
TIMM = {  # the first name of each piece
    piece: name for _, name, piece, _ in reversed(RELEASED)
}
NEW = {piece: name for piece, name in TIMM.items() if 'clca' not in piece}
DEIT3 = [name for name in NEW if name.startswith('deit3')]
UNRELEASED = {
    'deit3-tiny-p16',
    'deit3-huge-52-p14',
    'deit3-huge-26x2-p14',
    'par-vit-tiny-6x2-p16',
    'par-vit-small-18x2-p16',
    'par-vit-base-18x2-p16',
    'par-vit-large-12x2-p16',
    'par-vit-huge-16x2-p14',
}
# drop path on ImageNet-1k, thesis 7.2, and Three things, section 3
RATES = {
    'deit3-tiny-p16': 0.0,
    'deit3-small-p16': 0.0,
    'deit3-base-p16': 0.1,
    'deit3-large-p16': 0.4,
    'deit3-huge-p14': 0.5,
    'deit3-huge-52-p14': 0.5,
    'deit3-huge-26x2-p14': 0.5,
    'par-vit-tiny-6x2-p16': 0.0,
    'par-vit-small-18x2-p16': 0.05,
    'par-vit-base-18x2-p16': 0.1,
    'par-vit-large-12x2-p16': 0.4,
}
SMALL = dict(embed_dim=16, depth=2, num_heads=2)
ARCH = dict(embed_dims=16, num_layers=2, num_heads=2, feedforward_channels=64)


def built(name, **options):
    """The model of a piece, on the meta device."""
    model = piece(f'models/{name}')['model']
    model['backbone'].update(options)
    with torch.device('meta'):
        return MODELS.build(model)


def test_docs_list_every_model_of_timm_and_every_piece():
    assert {name for _, name, _, _ in RELEASED} == set(
        timm.list_pretrained('deit*')
    )
    found = {
        path.stem
        for kind in ('deit', 'par-vit')
        for path in FOLDER.glob(f'{kind}*.py')
    }
    assert found == NEW.keys() | UNRELEASED
    docs = (ROOT / 'docs/weights.md').read_text()
    assert all(f'`{name}`' in docs for name in found)


@pytest.mark.parametrize('file, name, stem, size', RELEASED)
def test_names_of_the_release(file, name, stem, size):
    """One file, one architecture and size under each of timm's names."""
    cfg = timm.get_pretrained_cfg(name)
    assert cfg.url == f'https://dl.fbaipublicfiles.com/deit/{file}'
    first = timm.get_pretrained_cfg(TIMM[stem])
    of_size = first.architecture.replace('_224', f'_{size}')
    assert (cfg.architecture, cfg.input_size[1]) == (of_size, int(size))
    assert (FOLDER / f'{stem}.py').is_file()


@pytest.mark.parametrize('name', [*NEW, *UNRELEASED])
def test_first_lines_and_weights(name):
    lines = (FOLDER / f'{name}.py').read_text().splitlines()
    assert lines[0].startswith('# Copyright') and lines[1].startswith('# ')
    weights = read(FOLDER / f'{name}.py').load_from
    assert weights == (f'timm://{NEW[name]}' if name in NEW else None)


@pytest.mark.parametrize('name', NEW)
def test_every_parameter_of_timm_has_its_place(name):
    """Names and shapes, and what no shape shows: heads and eps.

    Of one layer; their number is in test_family_costs.py.
    """
    here = built(name, depth=1)
    with torch.device('meta'):
        there = timm.create_model(NEW[name], depth=1, weight_init='skip')
    keys = here.load_state_dict(there.state_dict(), strict=True)
    assert not keys.missing_keys and not keys.unexpected_keys
    layer, block = here.backbone.layers[0], there.blocks[0]
    assert layer.attn.num_heads == block.attn.num_heads
    assert layer.ln2.eps == block.norm2.eps == there.norm.eps
    assert here.backbone.ln1.eps == there.norm.eps
    assert here.backbone.stride == there.patch_embed.patch_size


@pytest.mark.parametrize('name', [*NEW, *UNRELEASED])
def test_rates_of_stochastic_depth(name):
    cfg = read(FOLDER / f'{name}.py').model.backbone
    if 'distilled' in name:
        assert cfg.drop_path_rate == 0.1 and 'drop_path_mode' not in cfg
        return
    assert cfg.drop_path_mode == 'uniform'
    assert cfg.drop_path_rate == RATES.get(name, cfg.drop_path_rate)


@pytest.mark.parametrize('name', [*DEIT3, *UNRELEASED])
def test_layer_scale_as_in_the_papers(name):
    """1e-4 for every DeiT III; Three things' shorter training has none."""
    cfg = piece(f'models/{name}')['model']['backbone']
    cfg.update(depth=1, arch=dict(ARCH, num_layers=1), patch_size=16)
    weights = MODELS.build(cfg).state_dict()
    gammas = [v for k, v in weights.items() if 'gamma' in k]
    assert bool(gammas) == name.startswith('deit3')
    assert all((gamma == 1e-4).all() for gamma in gammas)


@pytest.mark.parametrize('name', sorted(UNRELEASED))
def test_branches(name):
    """As many as its name says."""
    shape = re.search(r'-(\d+)x(\d+)-', name)
    layer = built(name, depth=1).backbone.layers[0]
    if shape is None:
        assert not hasattr(layer, 'branches')
        return
    depth, branches = map(int, shape.groups())
    assert len(layer.branches) == branches
    arch = read(FOLDER / f'{name}.py').model.backbone.arch
    assert arch.num_layers == depth


def test_any_shape_by_a_line_of_options():
    """As ``--cfg-options`` sets them."""
    cfg = Config(dict(model=piece('models/par-vit-small-18x2-p16')['model']))
    cfg.merge_from_dict(
        {
            'model.backbone.arch.num_layers': 9,
            'model.backbone.branches': 4,
            'model.backbone.layer_scale_init_value': 1e-4,
            'model.backbone.stem.type': 'mmclca.HMLPStem',
        }
    )
    with torch.device('meta'):
        backbone = MODELS.build(cfg.model).backbone
    assert len(backbone.layers) == 9
    gammas = [b.ffn.gamma2.weight for b in backbone.layers[0].branches]
    assert [gamma.shape for gamma in gammas] == [(384,)] * 4
    assert type(backbone.patch_embed).__name__ == 'HMLPStem'


def release(there):
    """The file that DeiT III's authors would write of a model of timm."""
    weights = there.state_dict()
    return {
        'model': {
            re.sub(r'ls([12])\.gamma', r'gamma_\1', key): value
            for key, value in weights.items()
        }
    }


@pytest.mark.parametrize('name', NEW)
def test_logits_are_those_of_timm(name, tmp_path):
    """At their size from the release's file, at another from timm's."""
    side = int(name[-2:])
    there = timm.create_model(
        NEW[name], num_classes=5, img_size=4 * side, **SMALL
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
        load_checkpoint(here, str(path), strict=True)
        there.set_input_size(size)
        x = torch.randn(1, 3, size, size, dtype=torch.float64)
        with torch.no_grad():
            assert (here(x) - there.double()(x)).abs().max() < 1e-9


@pytest.mark.parametrize('name', ['deit3-small-p16', 'par-vit-tiny-6x2-p16'])
def test_clca_on_a_piece(name):
    cfg = read(FOLDER / f'{name}.py').model
    clca = with_reduction(cfg, 'EViT', 0.5, cache=True, cla=True)
    with torch.device('meta'):
        model = MODELS.build(clca)
    assert model.backbone.cache is not None
    assert type(model.head).__name__ == 'CLAHead'


def test_names_in_sweeps():
    """A name that two files have stays that of the older one."""
    found = {name: pieces.find(pieces.MODELS, name) for name in TIMM}
    assert found.pop('deit3-base-p16').stem == 'clca-evit_deit3-base-p16'
    assert all(file.stem == name for name, file in found.items())


@pytest.mark.parametrize('name', ['deit-tiny-distilled-p16', 'deit3-tiny-p16'])
def test_weights_from_scratch_are_drawn_as_in_the_papers(name):
    cfg = piece(f'models/{name}')['model']
    cfg['backbone'].update(img_size=32, arch=dict(ARCH, embed_dims=96))
    cfg['head'].update(in_channels=96)
    model = MODELS.build(cfg)
    model.init_weights()
    weights = model.state_dict()
    drawn = [
        name
        for name, value in weights.items()
        if re.search(r'(attn|ffn|head).*weight$|token|pos_embed', name)
        and value.ndim > 1
    ]
    assert len(drawn) >= 2 * 4 + 3
    for name in drawn:
        std = weights[name].std().item()
        assert std == pytest.approx(0.02, rel=0.3), name
