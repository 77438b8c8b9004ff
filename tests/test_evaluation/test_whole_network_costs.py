# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Parameters and multiply-accumulates of CaiT, ResMLP and PatchConvNet.

Every row of Touvron's thesis, by its closed forms and counted on our models.
Its numbers leave out what works on single elements; our counter takes norms
and affine maps along, one multiply-accumulate an element.
"""

from math import ceil

import pytest
import torch
from every_config import piece

from mmclca.evaluation.cost import ATEN, Counter
from mmclca.registry import MODELS

CLASSES = 1000
ELEMENTWISE = (ATEN.native_layer_norm, ATEN.addcmul)
# piece: parameters and GMACs, by the side of an image in pixels
CAIT = {
    'cait-xxs24-p16': {224: (11_956_264, 2.523), 384: (12_029_224, 9.599)},
    'cait-xxs36-p16': {224: (17_299_720, 3.756), 384: (17_372_680, 14.313)},
    'cait-xs24-p16': {224: (26_560_648, 5.390), 384: (26_670_088, 19.241)},
    'cait-xs36-p16': {224: (38_557_432, 8.030), 384: (38_666_872, 28.700)},
    'cait-s24-p16': {224: (46_916_200, 9.327), 384: (47_062_120, 32.110)},
    'cait-s36-p16': {
        224: (68_220_712, 13.902),
        256: (68_243_752, 18.652),
        384: (68_366_632, 47.908),
    },
    'cait-s48-p16': {224: (89_525_224, 18.477), 384: (89_671_144, 63.706)},
    'cait-m24-p16': {224: (185_850_088, 35.776), 384: (186_141_928, 115.868)},
    'cait-m36-p16': {
        224: (270_929_512, 53.367),
        384: (271_221_352, 172.944),
        448: (271_381_096, 247.413),
    },
    'cait-m48-p16': {
        224: (356_008_936, 70.959),
        384: (356_300_776, 230.020),
        448: (356_460_520, 329.108),
    },
    'cait-b12-p16': {224: (100_770_664, 18.185)},
}
RESMLP = {
    'resmlp-s12-p16': {224: (15_350_872, 3.010)},
    'resmlp-s24-p16': {224: (30_020_680, 5.961)},
    'resmlp-s36-p16': {224: (44_690_488, 8.913)},
    'resmlp-b24-p16': {224: (115_736_776, 23.021)},
    'resmlp-s12-p14': {224: (15_607_912, 3.984)},
    'resmlp-s12-p8': {224: (22_051_624, 13.989)},
    'resmlp-b24-p8': {224: (129_138_280, 100.231)},
}
PATCH_CONVNET = {
    'patchconvnet-s20': {224: (10_235_896, 1.637)},
    'patchconvnet-s36': {224: (16_233_976, 2.574)},
    'patchconvnet-s60': {
        224: (25_231_096, 3.979),
        288: (25_231_096, 6.574),
        320: (25_231_096, 8.115),
        384: (25_231_096, 11.683),
        512: (25_231_096, 20.764),
    },
    'patchconvnet-s120': {224: (47_723_896, 7.493)},
    'patchconvnet-b36': {224: (63_699_976, 10.214)},
    'patchconvnet-b60': {
        224: (99_388_936, 15.803),
        288: (99_388_936, 26.107),
        384: (99_388_936, 46.394),
    },
    'patchconvnet-b120': {
        224: (188_611_336, 29.775),
        288: (188_611_336, 49.192),
        320: (188_611_336, 60.721),
        384: (188_611_336, 87.419),
    },
    'patchconvnet-l60': {
        224: (176_009_576, 28.043),
        288: (176_009_576, 46.329),
        384: (176_009_576, 82.329),
    },
    'patchconvnet-l120': {
        224: (334_294_376, 52.846),
        288: (334_294_376, 87.308),
        384: (334_294_376, 155.157),
    },
    'patchconvnet-s60-per-class': {224: (25_614_712, 5.308)},
}
QUICK = (
    ('cait-b12-p16', 224),
    ('resmlp-s12-p14', 224),
    ('patchconvnet-s20', 224),
)


def built(name, size, **options):
    """The model of a piece for images of a size, on the meta device."""
    model = piece(f'models/{name}')['model']
    model['backbone'].update(img_size=size, **options)
    with torch.device('meta'):
        return MODELS.build(model).eval()


def parameters(model):
    return sum(parameter.numel() for parameter in model.parameters())


def macs(model, size):
    """What our counter counts of one image, without single elements."""
    image = torch.zeros(1, 3, size, size, device='meta')
    with torch.no_grad(), Counter() as counter:
        model(image)
    counts = counter.get_flop_counts()['Global']
    return sum(n for op, n in counts.items() if op not in ELEMENTWISE) // 2


def cait_forms(model, size):
    """Thesis, 3.6: layers, two class layers, embedding, positions, head."""
    backbone, K = model.backbone, CLASSES
    L, d = len(backbone.layers), backbone.embed_dims
    h = backbone.layers[0].attn.num_heads
    N, p = (size // 16) ** 2, 16
    layer, ends = 12 * d**2 + 15 * d, (3 * p**2 + 1) * d + N * d + d + 2 * d
    params = L * (layer + 2 * h**2 + 2 * h) + 2 * layer + ends + (d + 1) * K
    mixed = L * (12 * N * d**2 + 2 * N**2 * d + 2 * N**2 * h**2)
    read = 2 * (N + 1) * d**2 + 2 * d**2 + 2 * (N + 1) * d + 8 * d**2
    return params, N * 3 * p**2 * d + mixed + 2 * read + d * K


def resmlp_forms(model, size):
    """Thesis, chapter 4: layers, embedding, last affine map, head."""
    backbone, K = model.backbone, CLASSES
    L, d = len(backbone.layers), backbone.embed_dims
    p = backbone.patch_embed.projection.stride[0]
    N = (size // p) ** 2
    layers = L * (8 * d**2 + 11 * d + N**2 + N)
    params = layers + (3 * p**2 + 1) * d + 2 * d + (d + 1) * K
    return params, N * 3 * p**2 * d + L * (N**2 * d + 8 * N * d**2) + d * K


def patch_convnet_forms(model, size):
    """Thesis, chapter 5: stem, column, pooling by queries, head."""
    backbone, K = model.backbone, CLASSES
    L, d = len(backbone.layers), backbone.embed_dims
    N, queries = ceil(size / 16) ** 2, backbone.pool.cls_token.size(1)
    keys = N + (queries == 1)  # CLS is no key where there is one a class
    params = L * (2.5 * d**2 + 16.25 * d) + 3.375 * d + 5.90625 * d**2
    params += 10 * d**2 + 14 * d + queries * d + 2 * d + (d + 1) * K
    stem = size**2 * (27 * d / 32 + 27 * d**2 / 512)
    column = L * (N * (2 * d**2 + 9 * d) + d**2 / 2)
    pooling = 2 * keys * d**2 + queries * (2 * d**2 + 2 * keys * d + 6 * d**2)
    head = d * K * (queries == 1)  # else a product of elements, a class each
    return params, stem + column + pooling + head


FORMS = {
    'cait': cait_forms,
    'resmlp': resmlp_forms,
    'patchconvnet': patch_convnet_forms,
}


def rows():
    """Piece, side of an image, parameters and GMACs; few that are quick."""
    for name, sizes in {**CAIT, **RESMLP, **PATCH_CONVNET}.items():
        for size, (params, gmacs) in sizes.items():
            slow = (name, size) not in QUICK
            marks = [pytest.mark.slow] if slow else []
            row = (name, size, params, gmacs)
            yield pytest.param(*row, id=f'{name}-{size}', marks=marks)


@pytest.mark.parametrize('name, size, params, gmacs', [*rows()])
def test_every_row_of_the_thesis(name, size, params, gmacs):
    """Counted, by formula and in the table: all three are the same."""
    model = built(name, size)
    by_formula = FORMS[name.split('-')[0]](model, size)
    assert (parameters(model), macs(model, size)) == by_formula
    assert params == by_formula[0]
    assert by_formula[1] / 1e9 == pytest.approx(gmacs, rel=1e-3)


def test_class_mlp():
    """Two layers, in which patches are summed by N + 1 weights and a bias."""
    model = built('resmlp-s12-p16', 224, ending='class_mlp')
    N, d = 196, 384
    params, by_formula = resmlp_forms(model, 224)
    params += 2 * (N + 2 + 11 * d + 8 * d**2)
    assert parameters(model) == params == 17_719_012
    counted = macs(model, 224)
    assert counted == by_formula + 2 * ((N + 1) * d + 8 * d**2)
    assert counted / 1e9 == pytest.approx(3.013, rel=1e-3)
