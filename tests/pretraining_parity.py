# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Cases of pre-training, where they are at hand, and models as they ask."""

from functools import partial

import torch
from parity import close
from public_cases import by_system, public

from mmclca.checkpoints.families.pretraining import rename_pretraining
from mmclca.checkpoints.load import load
from mmclca.models.selfsup import fixed_masks
from mmclca.registry import MODELS

DRAWN = public('family')
CASES, SHAPES = DRAWN.load()
each = partial(by_system, CASES)


def encoder(case, prefix='', **options):
    """Config of a case's encoder or teacher."""
    dims = case[f'{prefix}embed_dim']
    return dict(
        type='mmclca.SegmentedMAEViT',
        arch=dict(
            embed_dims=dims,
            num_layers=case['depth'],
            num_heads=case[f'{prefix}num_heads'],
            feedforward_channels=int(dims * case['mlp_ratio']),
        ),
        img_size=case['img_size'],
        patch_size=case['patch_size'],
        mask_ratio=case['mask_ratio'],
        norm_cfg=dict(type='LN', eps=case['eps']),
        **options,
    )


def mae(case, **options):
    """Config of a masked autoencoder."""
    options.setdefault('type', 'MAE')
    return dict(
        backbone=encoder(case),
        neck=dict(
            type='MAEPretrainDecoder',
            num_patches=(case['img_size'] // case['patch_size']) ** 2,
            patch_size=case['patch_size'],
            embed_dim=case['embed_dim'],
            decoder_embed_dim=case['decoder_embed_dim'],
            decoder_depth=case['decoder_depth'],
            decoder_num_heads=case['decoder_num_heads'],
            norm_cfg=dict(type='LN', eps=case['eps']),
        ),
        head=dict(
            type='MAEPretrainHead',
            norm_pix=case['norm_pix'],
            patch_size=case['patch_size'],
            loss=dict(type='PixelReconstructionLoss', criterion='L2'),
        ),
        **options,
    )


def weights(case):
    """The state dict by the names of a case's release."""
    return DRAWN.state_dict(case, SHAPES)


def built(config, case, folder):
    """A float64 model with the weights, loaded as people load them."""
    model = MODELS.build(config)
    model.init_weights()
    path = str(folder / 'release.pth')
    torch.save({'model': weights(case)}, path)
    load(model.double(), path, strict=False)
    return model.train()


def losses_of(model, case):
    """Losses by name, in the masks of a case, and their gradients."""
    with fixed_masks(model, torch.tensor(case['ids_shuffle'])):
        losses = model.loss(DRAWN.images(case), None)
    sum(value for name, value in losses.items() if 'loss' in name).backward()
    return {name: value.detach() for name, value in losses.items()}


def check_gradients(model, norms, others={}):
    """Compare the norms of all gradients; ``others`` are our names."""
    params = dict(model.named_parameters())
    noise = 1e-12 * max(norm or 0.0 for norm in norms.values())
    theirs = {key: torch.tensor(0) for key in norms if key not in others}
    ours = dict(zip(theirs, rename_pretraining(theirs), strict=True)) | others
    for key, norm in norms.items():
        grad = params.pop(ours[key].replace('foreign_', '')).grad
        assert abs(grad.norm().item() - norm) <= 1e-6 * norm + noise, key
    assert not [name for name, p in params.items() if p.requires_grad]


def check_sums(found, expected):
    assert close([DRAWN.sums(x) for x in found], expected)


def mirl(case):
    """Config of a MIRL."""
    sizes = ('decoder_embed_dims', 'decoder_depth', 'decoder_num_heads')
    sizes = {name: case[name.replace('dims', 'dim')] for name in sizes}
    did = None if case['did'] == 'none' else case['did']
    return dict(
        type='mmclca.MIRL',
        backbone=encoder(case, num_segments=case['segments']),
        neck=dict(
            type='mmclca.MIRLDecoders',
            did=did,
            weight_norm=case['weight_norm'],
            **sizes,
        ),
        head=dict(type='mmclca.MIRLHead', mode=case['mode']),
    )


def part(case, prefix):
    """Weights of one network in a case, without its prefix."""
    named = weights(case).items()
    return {
        key.removeprefix(prefix): value
        for key, value in named
        if key.startswith(prefix)
    }


def distilled(case, folder):
    """Config of a distilled one, whose teacher's file is in a folder."""
    path = str(folder / 'teacher.pth')
    torch.save({'model': part(case, 'tch_model.')}, path)
    distill = [
        dict(
            type=f'mmclca.{kind}Distillation',
            layers=case[f'{key}_layers'],
            adapter=case[f'{key}_adapter'],
            weight=case[f'{key}_alpha'],
        )
        for key, kind in (('attn', 'Attention'), ('hidden', 'Hidden'))
        if case[f'{key}_layers']
    ]
    teacher = dict(backbone=encoder(case, 'teacher_'), checkpoint=path)
    return mae(
        case, type='mmclca.DistilledMAE', teacher=teacher, distill=distill
    )


def adapters(case, model):
    """Our adapters by their names in the public code."""
    return {
        f'{kind}_adapter.adapter{int(layer) - shift}.weight': (
            f'distill.{place}.adapters.{layer}.weight'
        )
        for place, (kind, shift) in enumerate((('attn', 1), ('hidden', 0)))
        if place < len(model.distill)
        for layer in model.distill[place].adapters
    }
