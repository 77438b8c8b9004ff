# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Study of fit and its rivals: choice without a dataset, and features."""

import frontier
import pandas as pd

from mmclca.models.heads import LayerFusionHead

CLASSIFIERS = ['fit', 'all']
RIVAL = 'CLS, last layer, ridge'


def row(network, method, classifier, *accuracies):
    facts = dict(
        network=network, method=method, classifier=classifier, img_size=224
    )
    return facts | dict(zip('abc', accuracies, strict=True))


def test_a_classifier_is_chosen_on_the_other_datasets():
    table = pd.DataFrame(
        [
            row('deit_tiny', 'ATC', 'fit', 50, 60, 90),
            row('deit_tiny', 'ATC', 'all', 55, 65, 10),
            row('deit_tiny', 'none', RIVAL, 70, 40, 40),
            row('vit_tiny', 'DiffRate', 'fit', 50, 60, 90),
            row('vit_tiny', 'DiffRate', 'all', 55, 65, 10),
            row('vit_tiny', 'none', RIVAL, 10, 40, 12),
        ]
    )
    deit, vit = frontier.left_out(table, ['a', 'b', 'c'], CLASSIFIERS)
    assert [x['chosen'] for x in deit] == ['fit', 'fit', 'all']
    assert [x['ours'] for x in vit] == [50, 60, 10]
    assert frontier.largest_loss(deit) == 30
    assert frontier.largest_loss(vit) == 2


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
