# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Fit networks of timm: recognized weights, and all commands."""

import pytest
import timm
import torch
from installed import NEEDS_COMPILER, needs
from tiny_photos import write_photos, write_weights

import mmclca
from mmclca.checkpoints.error import CheckpointError
from mmclca.fitting import FittedModel
from mmclca.fitting.weights import find_weights
from mmclca.registry import MODELS

FAMILIES = (
    *('mobilenetv3_small_050', 'mobileone_s0', 'fastvit_t8', 'test_byobnet'),
    *('test_efficientnet', 'test_convnext', 'regnetx_002', 'resnet18'),
    *('swin_tiny_patch4_window7_224', 'hiera_tiny_224', 'pvt_v2_b0'),
    'test_resnet',
)
VITS = 'vit_small_patch16_dinov3', 'eva02_tiny_patch14_224'
BUDGETS = dict(zip(VITS, ('1.5GMACs', '0.5GMACs'), strict=True))
# with 1e-5 of timm, random layers change tokens by rounding errors only
SCALES = dict(vit_small_patch16_dinov3=dict(init_values=1.0))
NEEDS_EVA = needs('timm', '1.0.31')


def write(folder, arch, name=None, **options):
    """Write random weights; return the file."""
    torch.manual_seed(0)
    path = folder / f'{name or arch}.pth'
    torch.save(timm.create_model(arch, **options).state_dict(), path)
    return path


@pytest.mark.parametrize(
    'name', ['test_resnet_mine', 'test_resnet-0123456789', 'test_resnet']
)
def test_network_is_recognized_by_the_name_of_the_file(name, tmp_path):
    found = find_weights(str(write(tmp_path, 'test_resnet', name)))
    assert found.backbone['arch'] == 'test_resnet'
    assert not found.backbone['fused'] and not found.notes
    assert found.network == 'test_resnet in timm'


def test_merged_branches_are_recognized(tmp_path):
    path = write(tmp_path, 'fastvit_t8', inference_mode=True)
    assert find_weights(str(path)).backbone['fused']


def test_find_weights_accepts_a_file_without_counters_of_batch_norms(tmp_path):
    path = write(tmp_path, 'test_resnet')
    weights = torch.load(path)
    torch.save(
        {x: y for x, y in weights.items() if 'num_batches' not in x}, path
    )
    pretrained = find_weights(str(path))
    network = MODELS.build(pretrained.backbone)
    network.load_state_dict(network.rename(torch.load(path)))


def test_unknown_network_is_refused_with_similar_names(tmp_path):
    path = write(tmp_path, 'test_resnet', 'resnet_18')
    with pytest.raises(CheckpointError, match='`arch`.*resnet18'):
        find_weights(str(path))
    with pytest.raises(CheckpointError, match='test_convnext'):
        find_weights(str(path), arch='test_convnext')
    for arch in ('test_resnett', 'hf-hub:someone/network'):
        with pytest.raises(ValueError, match='arch='):
            find_weights(str(path), arch=arch)
    # a network with token reduction in fit must match its name, too
    with pytest.raises(CheckpointError, match='test_resnet in timm'):
        find_weights(str(write_weights(tmp_path)), arch='test_resnet')


def fit_and_extend(arch, folder, run, **sizes):
    """Fit a network, predict, and add a class; return the model folder."""
    photos = write_photos(folder)
    weights, out = write(folder, arch, **sizes), folder / 'model'
    options = dict(weights=weights, runtime='pytorch', folds=2)
    model = mmclca.fit(photos, out, probe_only=True, **options)
    has_layers = arch in VITS
    assert (model.facts['model']['depth'] is not None) == has_layers
    assert (model.facts['model']['method'] is not None) == has_layers
    assert model.facts['cost']['gmacs'] > 0
    assert (out / 'report.html').stat().st_size > 1000
    results = model.predict(photos)
    assert len(results) == 16 and all('pred_class' in r for r in results)
    more = write_photos(folder / 'more', seed=1) / 'ash'
    assert run('add-class', out, more, '--name', 'new') == 0
    return out


@NEEDS_EVA
@pytest.mark.parametrize('arch', VITS)
def test_rotary_vit_gets_layer_features(arch, tmp_path):
    path = write(tmp_path, arch, 'mine')
    pretrained = find_weights(str(path), arch=arch)
    assert pretrained.backbone == dict(type='mmclca.TimmViT', arch=arch)
    assert pretrained.network.startswith(f'{arch} in timm, 12 layers')
    with pytest.raises(CheckpointError, match='parameters differ'):
        find_weights(str(path), arch='vit_base_patch16_dinov3')


@NEEDS_EVA
def test_vit_without_a_cls_token_has_stages(tmp_path):
    arch = 'test_vit4'
    pretrained = find_weights(str(write(tmp_path, arch)))
    assert pretrained.has_stages and pretrained.depth is None


@pytest.mark.slow
def test_network_is_fitted_and_extended(tmp_path, run):
    fit_and_extend('test_resnet', tmp_path, run)


@NEEDS_COMPILER
@pytest.mark.slow
@pytest.mark.parametrize('arch', FAMILIES)
def test_network_is_fitted_extended_and_exported(arch, tmp_path, run, capsys):
    out = fit_and_extend(arch, tmp_path, run)
    assert run('export', out) == run('export', out, '--int8') == 0
    assert 'Checked' in capsys.readouterr().out
    sizes = [(out / f'model{x}.onnx').stat().st_size for x in ('', '.int8')]
    assert sizes[1] < 0.7 * sizes[0]


@NEEDS_COMPILER
@NEEDS_EVA
@pytest.mark.slow
@pytest.mark.parametrize('arch', VITS)
def test_rotary_vit_is_fitted_extended_and_exported(
    arch, tmp_path, run, capsys
):
    out = fit_and_extend(arch, tmp_path, run, **SCALES.get(arch, {}))
    for option in ('--int8', '--web'):  # of a 32-bit ONNX file
        assert run('export', out, option) == 0
    assert capsys.readouterr().out.count('Checked') >= 2
    fit = ['fit', tmp_path / 'photographs', '--out', tmp_path / 'cheap']
    fit += ['--weights', tmp_path / f'{arch}.pth', '--probe-only']
    assert run(*fit, '--budget', BUDGETS[arch], '--runtime', 'pytorch') == 0
    model = FittedModel(tmp_path / 'cheap').facts['model']
    assert model['img_size'] < 224
