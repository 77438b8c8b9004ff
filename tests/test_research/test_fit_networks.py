# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Default networks of fit."""

import fit_networks

from mmclca.fitting.candidates import DEIT, VIT_TINY
from mmclca.models.heads import LayerFusionHead


def test_defaults_are_the_first_reduced_candidates():
    networks = fit_networks.list_defaults()
    names = [fit_networks.get_name(file) for file, _ in networks]
    assert names == ['deit_tiny', 'vit_tiny']
    for (_, variant), table in zip(networks, (DEIT, VIT_TINY), strict=True):
        first = next(x for x in table if x.reduction['method'])
        assert variant.method == first.reduction['method']
        assert variant.img_size == first.img_size
    assert fit_networks.list_defaults(fit_networks.VIT) == networks[1:]


def test_columns_are_counted_by_layer_and_part():
    head = LayerFusionHead(5, in_channels=8, num_layers=12, num_parts=3)
    columns = fit_networks.list_layer_columns(head)
    assert columns.shape == (12, 3, 8)
    assert columns[-1, 0].tolist() == [*range(264, 272)]
