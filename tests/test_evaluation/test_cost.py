# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import pytest
import torch

from mmclca.evaluation.cost import COST_PARTS, MacCounter, count, count_config
from mmclca.models.reduction.reducers import TopK
from mmclca.registry import MODELS


def vit(size, method, keep_rate, clca, arch='base', channels=768):
    backbone = dict(
        type='mmclca.TokenReductionViT',
        arch=arch,
        img_size=size,
        reduce_at=(3, 6, 9),
    )
    head = dict(num_classes=80, in_channels=channels)
    if method is not None:
        backbone['reducer'] = dict(
            type=f'mmclca.{method}', keep_rate=keep_rate
        )
    if clca:
        backbone['cache'] = dict(type='mmclca.CrossLayerCache')
        backbone.update(out_indices=(3, 6, 9, 11), final_norm=False)
        head.update(type='mmclca.CLAHead', num_layers=4)
    else:
        head.update(type='VisionTransformerClsHead', init_cfg=None)
    return dict(
        type='mmclca.TokenReductionClassifier', backbone=backbone, head=head
    )


def tiny(**backbone):
    """Four narrow layers with CLCA, 64 px."""
    arch = dict(embed_dims=16, num_layers=4, num_heads=2)
    model = vit(64, 'EViT', 0.5, True, channels=16)
    model['backbone'].update(
        arch=dict(arch, feedforward_channels=32),
        reduce_at=(1, 2),
        out_indices=(1, 2, 3),
        **backbone,
    )
    model['head'].update(num_layers=3)
    return model


def test_parts_equal_hand_computed_costs():
    """8, 5 and 3 of 16 patches are kept, with CLS and a fused token."""
    C, classes = 192, 80
    config = vit(64, 'EViT', 0.5, False, 'deit-tiny', C)
    model = MODELS.build(config).train()
    cost = count(model)
    attended = [17] * 4 + [10] * 3 + [7] * 3 + [5] * 2
    leaving = [17] * 3 + [10] * 3 + [7] * 3 + [5] * 3
    assert (cost.attended, cost.tokens) == (attended, leaving)
    cls_row = fused = (17 + 10 + 7) * C
    assert cost.parts == dict(
        embedding=16 * (3 * 16 * 16) * C,
        attention=sum(N * C + 4 * N * C**2 + 2 * N**2 * C for N in attended),
        FFN=sum(N * C + 8 * N * C**2 for N in leaving),
        reduction=cls_row + fused,
        head=leaving[-1] * C + C * classes,
    )
    assert cost.flops == sum(cost.parts.values())
    # the model is unchanged
    assert all(module.training for module in model.modules())
    assert not any(
        module._forward_hooks or module._forward_pre_hooks
        for module in model.modules()
    )


def test_count_config_uses_the_image_shape():
    own, wide = count_config(tiny()), count_config(tiny(), (64, 96))
    assert (own.shape, own.tokens[0]) == ((64, 64), 16 + 2)
    assert (wide.shape, wide.tokens[0]) == ((64, 96), 24 + 2)
    assert wide.params == own.params


def test_mmpretrain_vit_costs_the_same():
    ours = dict(tiny(reducer=None, cache=None), type='ImageClassifier')
    ours['head'] = dict(type='LinearClsHead', num_classes=2, in_channels=16)
    ours['backbone'].update(out_indices=-1, final_norm=True)
    sizes = {k: ours['backbone'][k] for k in ('arch', 'img_size')}
    theirs = dict(ours, backbone=dict(type='VisionTransformer', **sizes))
    assert count_config(ours) == count_config(theirs)


def test_other_backbones_have_totals_only():
    model = dict(
        type='ImageClassifier',
        backbone=dict(type='ResNet', depth=18),
        neck=dict(type='GlobalAveragePooling'),
        head=dict(type='LinearClsHead', num_classes=1000, in_channels=512),
    )
    cost = count_config(model, (224, 224))
    assert cost.flops == pytest.approx(1.81e9, rel=0.01)
    assert cost.params == 11_689_512
    assert (cost.parts, cost.tokens) == ({}, [])
    with pytest.raises(ValueError, match='`shape`'):
        count_config(model)


def test_other_backbones_use_their_image_size():
    sizes = dict(num_layers=1, embed_dims=8)
    sizes.update(tokens_mlp_dims=4, channels_mlp_dims=4)
    backbone = dict(type='MlpMixer', arch=sizes, img_size=64, patch_size=16)
    head = dict(type='LinearClsHead', num_classes=2, in_channels=8)
    model = dict(type='ImageClassifier', backbone=backbone, head=head)
    model['neck'] = dict(type='GlobalAveragePooling', dim=1)
    assert count_config(model).shape == (64, 64)


class KeepsPositive(TopK):
    """Reducer whose number of tokens depends on the image."""

    def after_attention(self, tokens, attended, stage):
        positive = int((tokens.features[0].mean(-1) > -9).sum())
        index = torch.arange(positive - 1, device=tokens.features.device)
        return tokens.gather(index.expand(len(tokens.features), -1))


def test_data_dependent_tokens_are_counted_on_the_cpu():
    cost = count_config(tiny(reducer=dict(type=KeepsPositive)))
    assert cost.tokens[:2] == [18, 17]
    assert list(cost.parts) == list(COST_PARTS)


def test_counter_supports_views_of_parameters():
    """Class attention reads CLS like this."""
    read = torch.nn.Linear(4, 5, device='meta')
    row = torch.nn.Parameter(torch.zeros(1, 4, device='meta'))
    with torch.no_grad(), MacCounter() as counter:
        read(row.expand(3, -1))
    assert counter.without_distances() == 3 * 4 * 5
