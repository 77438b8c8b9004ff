# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Study of fit and its rivals: features that users read."""

import frontier

from mmclca.models.heads import LayerFusionHead


def test_users_read_few_layers_of_a_vit_and_means_of_a_cnn():
    vit = LayerFusionHead(5, in_channels=8, num_layers=12, num_parts=3)
    found = frontier.select_user_columns(vit)
    last = 11 * 3 * 8
    assert found['CLS, last layer'].tolist() == [*range(last, last + 8)]
    assert len(found['CLS and average, all layers']) == 12 * 2 * 8
    cnn = LayerFusionHead(5, in_channels=[4, 6], num_layers=2, num_parts=2)
    found = frontier.select_user_columns(cnn)
    # mean and deviation of the first stage come first
    assert found['last stage'].tolist() == [*range(8, 14)]
    assert len(found['all stages']) == 20
