# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Masked image residual learning by definition and properties."""

import pytest
import torch
from small_models import arch, build
from small_selfsup import DECODERS, MAE, SIDE, encoder, mirl, shuffle

from mmclca.evaluation.cost import MacCounter
from mmclca.models.selfsup import fixed_masks
from mmclca.models.selfsup.mirl import add_residuals
from mmclca.registry import MODELS

IMAGES = torch.randn(2, 3, SIDE, SIDE, dtype=torch.float64)
ORDER = shuffle(2)


def losses_of(model):
    with fixed_masks(model, ORDER):
        return model.loss(IMAGES, None)


@pytest.fixture
def model():
    return build(mirl(4)).double()


def predictions(model):
    """Return one prediction per decoder, as gradient leaves, and the mask."""
    with fixed_masks(model, ORDER):
        preds, mask = model.predict_pixels(IMAGES)
    return [p.detach().requires_grad_() for p in preds], mask


def test_residual_loss_is_symmetric_in_pairs(model):
    """Visible patches have no effect."""
    preds, mask = predictions(model)
    losses = model.head.loss(preds, IMAGES, mask)
    assert [*losses] == ['loss_pair1', 'loss_pair2']
    total = sum(losses.values())
    total.backward()
    assert torch.equal(preds[0].grad, preds[3].grad)
    assert torch.equal(preds[1].grad, preds[2].grad)
    swapped = model.head.loss(preds[::-1], IMAGES, mask)
    assert losses == {k: v.detach() for k, v in swapped.items()}
    moved = [p + 9 * (1 - mask[..., None]) for p in preds]
    assert sum(model.head.loss(moved, IMAGES, mask).values()) == total


def test_residual_loss_is_mean_over_pairs(model):
    main, _, _, residual = predictions(model)[0]
    mask = torch.ones(2, 16)
    preds = [main, main, residual, residual]
    losses = model.head.loss(preds, IMAGES, mask)
    target = model.head.construct_target(IMAGES)
    error = (add_residuals(preds)[0] - target).square().mean()
    torch.testing.assert_close(sum(losses.values()), error)


def test_residual_loss_of_inner_pair_skips_last_segment(model):
    """Pair 2 of four segments does not use the last segment and its norm."""
    losses_of(model)['loss_pair2'].backward()
    *reached, last = model.backbone.layers
    for layer in reached:
        assert all(p.grad is not None for p in layer.parameters())
    unused = [*last.parameters(), model.backbone.ln1.weight]
    assert all(p.grad is None for p in unused)


def test_mirl_equals_mae_if_one_segment():
    own = build(mirl(1, did=None, weight_norm=False)).double()
    names = {
        'decoders.0.embed.1.': 'decoder_embed.',
        'decoders.0.pos_embed': 'decoder_pos_embed',
        'decoders.0.mask_token': 'mask_token',
        'decoders.0.layers.': 'decoder_blocks.',
        'decoders.0.ln.': 'ln1.',
        'decoders.0.pred.': 'decoder_pred.',
    }
    weights = {}
    for key, value in own.state_dict().items():
        for ours, theirs in names.items():
            key = key.replace(ours, theirs)
        weights[key] = value
    mae = MODELS.build(MAE).double()
    mae.load_state_dict(weights)
    assert losses_of(own)['loss_pair1'] == losses_of(mae)['loss']


def test_did_has_no_effect_if_projection_is_zero():
    with_did = build(mirl(2, did='all')).double()
    without = build(mirl(2, did=None)).double()
    without.load_state_dict(with_did.state_dict(), strict=False)
    assert losses_of(with_did) != losses_of(without)
    for name, parameter in with_did.named_parameters():
        if 'cross_attn.proj' in name:
            torch.nn.init.zeros_(parameter)
    assert losses_of(with_did) == losses_of(without)


def test_fine_and_coarse_parts_add_up_to_target():
    """In both orders; the fine part of a constant image is zero."""
    head = build(mirl(2, 'coarse2fine')).head.double()
    preds = [torch.zeros(2, 16, 768, dtype=torch.float64)] * 2
    coarse, fine = (target for _, target in head.parts(preds, IMAGES))
    other = build(mirl(2, 'fine2coarse')).head.double()
    assert torch.equal(other.parts(preds, IMAGES)[0][1], fine)
    target = other.construct_target(IMAGES)
    torch.testing.assert_close(coarse + fine, target)
    flat = other.fine_part(torch.ones_like(IMAGES))
    assert flat.abs().max() < 1e-3


def test_mirl_trains_all_parameters():
    model = build(mirl(2, 'coarse2fine')).double()
    losses = losses_of(model)
    assert [*losses] == ['loss_decoder1', 'loss_decoder2']
    sum(losses.values()).backward()
    trained = [p.grad for p in model.parameters() if p.requires_grad]
    assert all(grad is not None for grad in trained)


@pytest.mark.slow
def test_mirl_has_published_parameters_and_cost():
    """ViT-S-54 as in the code."""
    layers = dict(embed_dims=384, num_layers=54, feedforward_channels=1536)
    config = mirl(6)
    config['backbone'].update(arch=dict(layers, num_heads=12), img_size=224)
    config['neck'].update(zip(DECODERS, (384, 1, 12), strict=True))
    with torch.device('meta'):
        model = MODELS.build(config)
        image = torch.zeros(1, 3, 224, 224)
    counter = MacCounter()
    with torch.no_grad(), counter:
        model.predict_pixels(image)
    trained = [p for p in model.neck.parameters() if p.requires_grad]
    counts = [
        round(sum(p.numel() for p in parameters) / 1e6, 3)
        for parameters in (model.backbone.parameters(), trained)
    ]
    assert counts == [96.193, 17.025]
    assert round(counter.without_distances() / 1e9, 3) == 8.431


def test_mirl_initialization_matches_releases():
    model = MODELS.build(mirl(2))
    model.init_weights()
    decoder = model.neck.decoders[0]
    assert decoder.pos_embed[:, 1:].std() > 0.5
    assert 0.01 < decoder.mask_token.std() < 0.04
    reference = MODELS.build(encoder(type='MAEViT', arch=arch(4)))
    reference.init_weights()
    assert torch.equal(model.backbone.pos_embed, reference.pos_embed)
