# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Load several sets of weights, wrappers, and other libraries."""

import re

import pytest
import timm
import torch
from foreign_models import images, ours, theirs
from torchvision.models import VisionTransformer

from mmclca.checkpoints.opening import open_checkpoint
from mmclca.fitting.weights import find_weights

GOOD, BAD = {'a': torch.ones(2)}, {'a': torch.zeros(2)}
SETS = {
    'timm': dict(state_dict=BAD, state_dict_ema=GOOD),
    'DeiT': dict(model=BAD, model_ema=GOOD),
    'nested': dict(model=BAD, model_ema=dict(decay=0.9, module=GOOD)),
    'twice': dict(model=BAD, ema=dict(ema_model=dict(state_dict=GOOD))),
    'first': dict(ema_state_dict=GOOD, state_dict=BAD),
    'parameters': dict(params=BAD, params_ema=GOOD),
    'capitals': dict(model=BAD, EMA=GOOD),
    'DINO': dict(student=BAD, teacher=GOOD),
    'mmengine': dict(state_dict=GOOD, ema_state_dict=dict(BAD, steps=3)),
    'empty': dict(state_dict=GOOD, state_dict_ema=None),
    'statistics': dict(
        state_dict=dict(GOOD, b=torch.ones(1), c=torch.ones(1)),
        loss_ema=dict(value=torch.zeros(1)),
    ),
    'tutorial': dict(model_state_dict=GOOD, optimizer_state_dict=dict(a=1)),
}


@pytest.mark.parametrize('kind', SETS)
def test_moving_average_is_chosen(kind, tmp_path, log):
    torch.save(SETS[kind], tmp_path / 'w.pth')
    checkpoint = open_checkpoint(str(tmp_path / 'w.pth'))
    assert checkpoint.weights['a'].tolist() == [1, 1]
    several = kind not in ('mmengine', 'empty', 'statistics', 'tutorial')
    assert any('several' in line for line in log) == several
    assert bool(checkpoint.choice) == several


WRAPPED = [
    *('_orig_mod.', 'module.', 'backbone.', 'student.'),
    *('module._orig_mod.model.', 'my_net.', 'model.base_encoder.'),
]
THEIRS = theirs().state_dict()


def backbone_file(prefix, heads=()):
    named = {prefix + k: v for k, v in THEIRS.items() if 'head' not in k}
    return named | {f'{name}.weight': torch.ones(5, 16) for name in heads}


@pytest.mark.parametrize(
    'prefix, heads',
    [
        *((prefix, heads) for prefix in WRAPPED for heads in ((), ('fc',))),
        *((prefix, ()) for prefix in ('1.', 'model.0.', 'my-net.')),
    ],
)
def test_common_prefix_is_dropped(prefix, heads, load):
    here = load(backbone_file(prefix, heads), ours())
    wanted = THEIRS['blocks.0.attn.qkv.weight']
    found = here.state_dict()['backbone.layers.0.attn.qkv.weight']
    assert torch.equal(found, wanted)
    head = here.state_dict()['head.layers.head.weight']
    assert bool((head == 1).all()) == ('fc' in heads)


@pytest.mark.parametrize('prefix', ['', 'module.', 'model.net.'])
@pytest.mark.parametrize('bare', [False, True])
def test_own_names_load_behind_a_prefix(prefix, bare, load):
    own = ours().state_dict()
    if bare:
        own = {
            name.removeprefix('backbone.'): value
            for name, value in own.items()
            if name.startswith('backbone.')
        }
    weights = {prefix + name: 0 * x + 3 for name, x in own.items()}
    values = load(weights, ours()).state_dict()
    assert (values['backbone.layers.1.ln1.weight'] == 3).all()
    assert bool((values['head.layers.head.bias'] == 3).all()) != bare


def test_teacher_is_chosen_next_to_a_student(load):
    own = backbone_file('teacher.')
    own |= {k: 0 * v for k, v in backbone_file('student.').items()}
    weights = load(own, ours()).state_dict()
    assert weights['backbone.layers.0.attn.qkv.weight'].any()


def test_head_count_is_twelve_for_moco_v3(tmp_path):
    options = dict(embed_dim=384, depth=1, num_heads=12, num_classes=0)
    weights = timm.models.VisionTransformer(**options).state_dict()
    for prefix, arch, heads in (
        ('module.base_encoder.', '', 12),
        ('module.', 'vit_small', 12),
        ('', 'vit_small_patch16_224', 6),
    ):
        named = {prefix + name: value for name, value in weights.items()}
        path = str(tmp_path / 'w.pth.tar')
        torch.save(dict(arch=arch, state_dict=named), path)
        found = find_weights(path, 'half')
        assert found.backbone['arch']['num_heads'] == heads
        said = any('embed_dims=384' in note for note in found.notes)
        assert said == (heads == 6)


@torch.no_grad()
def check_equal(here, there):
    x = images()
    assert (here(x) - there(x)).abs().max() < 1e-9


@pytest.mark.parametrize('old', [False, True])
def test_torchvision_weights_give_equal_logits(old, load):
    there = VisionTransformer(32, 8, 3, 2, 16, 32, num_classes=5).double()
    for parameter in there.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    names = {'0': 'linear_1', '3': 'linear_2'} if old else {}
    weights = {
        re.sub(r'(?<=mlp\.)\d', lambda m: names.get(m[0], m[0]), name): value
        for name, value in there.state_dict().items()
    }
    check_equal(load(weights, ours()), there.eval())


VIT = {  # names in timm, and in ViT and DINOv2 at Hugging Face
    r'(cls_token|register_tokens)$': (r'embeddings.\1',) * 2,
    'pos_embed$': ('embeddings.position_embeddings',) * 2,
    r'patch_embed\.proj': ('embeddings.patch_embeddings.projection',) * 2,
    'norm1': ('layernorm_before', 'norm1'),
    'norm2': ('layernorm_after', 'norm2'),
    r'attn\.proj': ('attention.output.dense',) * 2,
    r'mlp\.fc1': ('intermediate.dense', 'mlp.fc1'),
    r'mlp\.fc2': ('output.dense', 'mlp.fc2'),
    r'ls([12])\.gamma': (r'layer_scale\1.lambda1',) * 2,
    r'^norm\.': ('layernorm.',) * 2,
    r'blocks\.': ('encoder.layer.',) * 2,
}
CLIP = {
    'cls_token$': 'embeddings.class_embedding',
    'pos_embed$': 'embeddings.position_embedding.weight',
    r'patch_embed\.proj': 'embeddings.patch_embedding',
    r'norm_pre\.': 'pre_layrnorm.',
    r'norm([12])\.': r'layer_norm\1.',
    r'attn\.proj\.': 'self_attn.out_proj.',
    r'^norm\.': 'post_layernorm.',
    r'blocks\.': 'encoder.layers.',
}


def renamed(weights, table, qkv, prefix):
    """Rename to Hugging Face, with separate query, key and value."""
    found = {}
    for name, value in weights.items():
        for old, new in table.items():
            name = re.sub(old, new, name)
        if name.startswith('head.'):
            found[name.replace('head', 'classifier')] = value
        elif 'attn.qkv' in name:
            for part, rows in zip(qkv, value.chunk(3), strict=True):
                found[prefix + name.replace('attn.qkv', part)] = rows
        else:
            found[prefix + name] = value
    return found


QKV_NAMES = [
    f'attention.attention.{part}' for part in ('query', 'key', 'value')
]


@pytest.mark.parametrize('prefix', ['', 'vit.', 'model.dinov2.'])
@pytest.mark.parametrize('style, column', [('plain', 0), ('deit3', 1)])
def test_hugging_face_vit_gives_equal_logits(style, column, prefix, load):
    there = theirs(style)
    table = {name: both[column] for name, both in VIT.items()}
    weights = renamed(there.state_dict(), table, QKV_NAMES, prefix)
    weights[f'{prefix}embeddings.mask_token'] = torch.ones(1)
    weights[f'{prefix}pooler.dense.weight'] = torch.ones(1)
    check_equal(load(weights, ours(style)), there)


def test_hugging_face_clip_gives_equal_features(load):
    there = theirs('clip', num_classes=0)
    parts = [f'self_attn.{part}_proj' for part in 'qkv']
    weights = renamed(there.state_dict(), CLIP, parts, 'vision_model.')
    weights = {
        name: value.flatten(0, 1)
        if 'embeddings.' in name and value.dim() == 3
        else value
        for name, value in weights.items()
    }
    name = 'vision_model.embeddings.class_embedding'
    weights[name] = weights[name].flatten()
    here = ours('clip')
    here.head = torch.nn.Identity()
    backbone = load(weights, here).backbone
    check_equal(lambda x: backbone(x)[-1], there)
