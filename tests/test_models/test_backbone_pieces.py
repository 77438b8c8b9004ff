# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Base configs of models agree with the timm models that they name."""

import pytest
import timm
from piece_models import FOLDER, NAMES, PLAIN, SMALL, piece

from mmclca.registry import MODELS
from mmclca.utils.meta_device import on_meta_device

MOCO = 'https://dl.fbaipublicfiles.com/moco-v3/vit-b-300ep/'
IMAGENET = ([123.675, 116.28, 103.53], [58.395, 57.12, 57.375])
# the paper uses ImageNet normalization, unlike the pre-training
SEEN_OTHERWISE = ('vit-base-p16', 'miil-base-p16', 'clip-base-p16')


@pytest.fixture(params=NAMES)
def backbone(request):
    return request.param


def test_names_cover_every_config():
    found = {
        path.stem.removeprefix('clca-evit_')
        for path in FOLDER.glob('clca-evit_*.py')
    }
    # mmclca.TimmViT is timm's model
    assert found == {*NAMES, 'dinov3-small-p16', 'vit-mini-p14'}


def test_config_loads_weights_of_its_name(backbone):
    name = piece(backbone).load_from
    if backbone == 'mocov3-base-p16':
        assert name == f'{MOCO}linear-vit-b-300ep.pth.tar'
        return
    assert name == f'timm://{NAMES[backbone]}'
    assert timm.is_model_pretrained(NAMES[backbone])


def test_parameters_and_settings_equal_timm(backbone):
    options = {**piece(backbone).model.backbone, **PLAIN}
    with on_meta_device():
        model = timm.create_model(
            NAMES[backbone], num_classes=0, weight_init='skip'
        )
        here = MODELS.build(options)
    keys = here.load_state_dict(model.state_dict(), strict=True)
    assert not keys.missing_keys and not keys.unexpected_keys
    assert here.patch_embed.projection.kernel_size == (
        model.patch_embed.proj.kernel_size
    )
    layer, block = here.layers[0], model.blocks[0]
    assert layer.attn.num_heads == block.attn.num_heads
    for norm in (layer.ln1, layer.ln2, here.ln1):
        assert norm.eps == block.norm1.eps == model.norm.eps
    if hasattr(model.norm_pre, 'eps'):
        assert here.pre_norm.eps == model.norm_pre.eps
    if scale := options.get('layer_scale_init_value'):
        small = timm.create_model(NAMES[backbone], **SMALL).blocks[0]
        assert (small.ls1.gamma == scale).all()
    assert not layer.attn.attn_drop and not here.drop_after_pos.p


def test_normalization_equals_timm_or_paper(backbone):
    preprocessor = piece(backbone).model.data_preprocessor
    assert preprocessor.to_rgb
    here = (preprocessor.mean, preprocessor.std)
    cfg = timm.get_pretrained_cfg(NAMES[backbone])
    seen = tuple([255 * v for v in values] for values in (cfg.mean, cfg.std))
    if backbone == 'mocov3-base-p16':
        seen = IMAGENET  # timm's name is the AugReg ViT
    if backbone in SEEN_OTHERWISE:
        assert here == IMAGENET
        assert here[0] != pytest.approx(seen[0])
    else:
        assert here[0] == pytest.approx(seen[0])
        assert here[1] == pytest.approx(seen[1])
