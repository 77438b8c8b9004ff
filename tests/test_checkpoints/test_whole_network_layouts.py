# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Load CaiT, ResMLP and PatchConvNet in each layout.

Logits must equal timm, and for PatchConvNet its public code.
"""

import re

import family_parity
import pytest
import torch
from foreign_models import images, write
from timm.layers import resample_abs_pos_embed
from timm.models.cait import Cait
from timm.models.mlp_mixer import Affine, MlpMixer, ResBlock

from mmclca.checkpoints.error import CheckpointError
from mmclca.checkpoints.load import load
from mmclca.registry import MODELS

SIZES = dict(patch_size=8, embed_dim=16, num_classes=5)


def random(model):
    """Randomize all parameters, with LayerScale near 0.3, in float64."""
    with torch.no_grad():
        for name, value in model.named_parameters():
            if re.search(r'gamma_|\.ls\d', name):
                value.fill_(0.3)
            value.add_(0.1 * torch.randn_like(value))
    return model.double().eval()


def cait(img_size=32, depth=3):
    return random(Cait(img_size, num_heads=2, depth=depth, **SIZES))


def resmlp():
    kinds = dict(block_layer=ResBlock, norm_layer=Affine, mlp_ratio=4)
    return random(MlpMixer(img_size=32, num_blocks=3, **kinds, **SIZES))


def ours(kind, img_size=32, **options):
    """Our classifier of equal size, float64."""
    arch = dict(embed_dims=16, num_layers=3)
    if kind == 'CaiT':
        arch.update(num_heads=2, feedforward_channels=64)
    sizes = dict(arch=arch, img_size=img_size, patch_size=8)
    backbone = dict(type=f'mmclca.{kind}', **sizes, **options)
    return classifier(backbone, 'LinearClsHead', 5, 16)


def classifier(backbone, head, num_classes, in_channels):
    head = dict(type=head, num_classes=num_classes, in_channels=in_channels)
    model = dict(type='ImageClassifier', backbone=backbone, head=head)
    return MODELS.build(model).double().eval()


def cait_release(weights):
    """DeiT release, saved by several processes."""
    return {'model': {f'module.{k}': v for k, v in weights.items()}}


def resmlp_release(weights):
    """Convert timm names to a DeiT release."""
    renames = (
        (r'stem\.', 'patch_embed.'),
        (r'linear_tokens\.', 'attn.'),
        (r'mlp_channels\.', 'mlp.'),
        (r'\.ls(\d)$', r'.gamma_\1'),
    )
    renamed = {}
    for name, value in weights.items():
        for pattern, new in renames:
            name = re.sub(pattern, new, name)
        affine = name.endswith(('.alpha', '.beta'))
        renamed[name] = value.flatten() if affine else value
    return renamed


LAYOUTS = ('timm', 'release')
RELEASES = dict(CaiT=cait_release, ResMLP=resmlp_release)


def file_of(kind, there, layout, folder):
    """Write a timm model."""
    weights = there.state_dict()
    if layout == 'timm':
        return write(folder / 'w.safetensors', weights)
    return write(folder / 'w.pth', RELEASES[kind](weights))


@pytest.mark.usefixtures('report_is_golden')
@pytest.mark.parametrize('layout', LAYOUTS)
@pytest.mark.parametrize('kind, theirs', [('CaiT', cait), ('ResMLP', resmlp)])
@torch.no_grad()
def test_logits_equal_timm(kind, theirs, layout, tmp_path):
    there, here = theirs(), ours(kind)
    path = file_of(kind, there, layout, tmp_path)
    load(here, path)
    x = images()
    assert (here(x) - there(x)).abs().max() < 1e-9


@pytest.mark.parametrize('size', [(24, 56), (16, 40)])
@torch.no_grad()
def test_cait_positions_are_resized_as_in_timm(size, tmp_path):
    """2 x 5 rows are one more than a square, but none is for CLS."""
    small, there = cait(), cait(size)
    weights = dict(small.state_dict())
    grid = there.patch_embed.grid_size
    rows = resample_abs_pos_embed(
        weights['pos_embed'], grid, num_prefix_tokens=0
    )
    there.load_state_dict(dict(weights, pos_embed=rows))
    here = ours('CaiT', size)
    path = file_of('CaiT', small, 'release', tmp_path)
    (line,) = load(here, path).resized
    assert line.endswith(f' to {grid[0]} x {grid[1]}')
    height, width = 8 * grid[0], 8 * grid[1]
    x = images(height, width)
    assert (here(x) - there(x)).abs().max() < 1e-9


@torch.no_grad()
def test_cait_rectangle_is_kept(tmp_path):
    """10 rows of a ViT would be CLS and 3 x 3 patches."""
    there, here = cait((16, 40)), ours('CaiT', (16, 40))
    path = file_of('CaiT', there, 'timm', tmp_path)
    assert not load(here, path).resized
    x = images(16, 40)
    assert (here(x) - there(x)).abs().max() < 1e-9
    with pytest.raises(CheckpointError, match='10 rows, 0 of them'):
        load(ours('CaiT', 24), path, strict=False)


@pytest.mark.parametrize(
    'kind, options, reason',
    [
        ('CaiT', dict(num_class_layers=1), r'class_layers\.1\.\S+ is'),
        ('CaiT', dict(talking_heads=False), r'attn\.mix_logits\.\S+ is'),
        ('ResMLP', dict(img_size=48), r'mix\.weight .*\(16, 16\), .* \(36'),
        ('ResMLP', dict(token_mixer='conv'), r'mix\.\S*weight'),
    ],
)
def test_network_is_refused_if_settings_differ(
    kind, options, reason, tmp_path
):
    theirs = dict(CaiT=cait, ResMLP=resmlp)[kind]()
    path = file_of(kind, theirs, 'timm', tmp_path)
    with pytest.raises(CheckpointError, match=reason) as error:
        load(ours(kind, **options), path, strict=False)
    assert kind in str(error.value)
    assert 'arch, img_size, patch_size and ' in str(error.value)


PATCH_CONVNETS = {
    case['name']: case for case in family_parity.cases('patchconvnet')
}


@pytest.mark.usefixtures('report_is_golden')
@pytest.mark.parametrize('name', ['pcn_base', 'pcn_multi'])
def test_patch_convnet_release_loads_completely(name, tmp_path):
    family_parity.classifier(PATCH_CONVNETS[name], tmp_path)


def test_class_queries_are_refused_if_number_differs(tmp_path):
    case = PATCH_CONVNETS['pcn_multi']
    path = write(tmp_path / 'w.pth', {'model': family_parity.weights(case)})
    backbone = family_parity.patch_convnet(case) | dict(multiclass=7)
    here = classifier(backbone, 'mmclca.PerClassHead', 7, case['embed_dim'])
    with pytest.raises(CheckpointError, match='arch, multiclass') as error:
        load(here, path, strict=False)
    assert 'pool.cls_token has shape (1, 10, 48)' in str(error.value)
