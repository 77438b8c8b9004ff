# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Study of token reduction on frozen networks with few photos."""

import few_tokens
import numpy as np
import pandas as pd
import pytest
import torch
from small_models import vit
from study import choice, features, networks, pixels, readings, rows, times
from study.early_layers import is_equal_after, record_early, skip_early
from study.similarity import LayerKeys, correlate_layers, record_keys
from toy_reducers import Halve, Mask

from mmclca.apis.probe import fit_linear
from mmclca.models.recording import shallow_copy
from mmclca.registry import MODELS

VIT = 'vit_tiny_patch16_224.safetensors'


def build(reducer=None):
    """Return a narrow ViT in which a reducer may replace the default."""
    settings = dict(type='mmclca.EViT', keep_rate=0.5)
    backbone = vit(
        reducer=settings,
        reduce_at=(3, 6, 9),
        out_indices=range(12),
        out_type='cls_average_std',
        final_norm=False,
    )
    torch.manual_seed(0)
    model = torch.nn.ModuleDict(dict(backbone=MODELS.build(backbone).eval()))
    if reducer:
        model.backbone.reducer = reducer(keep_rate=0.5)
    return model


def skip(model):
    """Return a copy from the first reduction on."""
    copied = shallow_copy(model)
    skip_early(copied.backbone)
    return copied


@pytest.mark.parametrize(
    'reducer, is_equal', [(None, True), (Halve, True), (Mask, False)]
)
def test_early_layers_are_skipped_only_if_nothing_changes(reducer, is_equal):
    model, images = build(reducer), torch.randn(2, 3, 32, 32)
    full = shallow_copy(build())
    outputs = record_early(full.backbone)
    with torch.no_grad():
        full.backbone(images)
        tokens = torch.from_numpy(outputs[0])
        assert is_equal_after(model, images, tokens, skip(model)) == is_equal


def test_recorded_keys_correlate_perfectly_before_the_first_reduction():
    model, images = build(), torch.randn(2, 3, 32, 32)
    with torch.no_grad():
        layers = record_keys(model.backbone, images)
        full = record_keys(build(Mask).backbone, images)
    assert [x.patches is None for x in layers] == [True] * 4 + [False] * 8
    assert model.backbone.recorder is None
    correlations = correlate_layers(layers, full)
    assert (correlations[:, :4] == 1).all()
    assert (correlations[0, 4:8] < 1).all()


def test_correlation_compares_tokens_with_the_mean_of_their_patches():
    generator = torch.Generator().manual_seed(0)
    keys = torch.randn(1, 8, 4, generator=generator)
    attention = torch.rand(1, 8, generator=generator)
    full = [LayerKeys(keys, attention, None)] * 12
    pairs = torch.eye(4).repeat_interleave(2, 1)[None]  # tokens of two patches
    mean = pairs @ keys / 2, (pairs @ attention[0] / 2)
    merged = LayerKeys(*mean, pairs)
    reversed_attention = LayerKeys(mean[0], -mean[1], 3 * pairs)
    correlations = correlate_layers([merged, reversed_attention], full)
    assert correlations[:, -2:] == pytest.approx(np.array([[1, 1], [1, -1]]))


def test_correlation_is_missing_if_two_tokens_are_left():
    keys, attention = torch.randn(1, 2, 4), torch.rand(1, 2)
    full = [LayerKeys(keys, attention, None)] * 12
    correlations = correlate_layers(
        [LayerKeys(keys, attention, torch.eye(2)[None])], full
    )
    assert np.isnan(correlations[:, -1]).all()


def test_readings_select_layers_of_a_vit_and_stages_of_a_cnn(monkeypatch):
    monkeypatch.setattr(readings, 'get_channels', lambda network: 2)
    network = networks.Network(VIT)
    read = readings.Reading(readings.LAST, depth=2).select(network)
    assert read.tolist() == [6, 7]
    read = readings.Reading(readings.ALL, depth=2).select(network)
    assert read.tolist() == [*range(12)]
    averages = readings.Reading(readings.AVERAGES[0]).select(network)
    assert averages.tolist() == [66, 67, 68, 69]
    monkeypatch.setattr(readings, 'get_channels', lambda network: [3, 4])
    cnn = networks.Network('mobileone_s0_reparam.safetensors')
    read = readings.Reading(readings.LAST).select(cnn)
    assert read.tolist() == [*range(6, 14)]


def test_choice_ignores_the_left_out_dataset():
    accuracies = np.array([[90, 50, 50], [40, 60, 70], [60, 56, 56.0]])
    options = choice.Options(accuracies, 62 - accuracies)
    assert options.leave_out() == [1, 0, 0]
    assert options.get_deployed().tolist() == [40, 50, 50]
    assert options.get_oracle().tolist() == [90, 60, 70]
    # the first two lose more than 4 points on a dataset
    assert options.leave_out(max_loss=6) == [1, 2, 2]
    assert options.leave_out(max_loss=1) == [None, None, None]
    assert np.isnan(options.get_deployed(max_loss=1)).all()


def test_networks_are_listed_once_and_the_compared_ones_first():
    listed = networks.list_networks()
    assert len({*listed}) == len({x.name for x in listed}) == len(listed)
    assert [x.method for x in listed[:2]] == ['', '']
    chosen = networks.list_networks(['ATC'])
    assert len(chosen) == 2 + 2 * len(networks.GRID['rates'])
    assert {*chosen} < {*listed}


@pytest.fixture
def study(tmp_path, monkeypatch):
    """Photos of one dataset, features of random numbers, and no table."""
    names = ('some', 'other')
    monkeypatch.setitem(networks.GRID, 'datasets', ('missing', *names))
    table = pd.DataFrame(
        [
            ('photo.jpg', label, split)
            for split, count in (('train', 4), ('test', 6))
            for label in range(3)
            for _ in range(count)
        ],
        columns=['path', 'label', 'split'],
    )

    def read(name):
        if name not in names:
            raise FileNotFoundError(f'folder {name} does not exist')
        return table

    for module in ('few_tokens', 'study.accuracy', 'study.features'):
        monkeypatch.setattr(f'{module}.read_dataset', read)
    monkeypatch.setattr(features, 'KEPT', tmp_path)
    monkeypatch.setattr('tables.RESULTS', tmp_path)
    monkeypatch.setattr(rows, 'mark', lambda *_: dict(untrained=0, random=0))
    monkeypatch.setattr(rows, 'count_gmacs', lambda *_: 1.0)
    monkeypatch.setattr(readings, 'get_channels', lambda network: 4)
    rng = np.random.default_rng(0)
    for network in networks.list_networks(['ATC'])[:3]:
        for name in names:
            values = rng.normal(size=(30, 144)).astype(np.float16)
            values += table.label.to_numpy()[:, None].astype(np.float16)
            file = features.find_file(network, name)
            file.parent.mkdir(parents=True, exist_ok=True)
            stored = features.Stored(values, False, np.full((2, 12), 0.5))
            features.save_arrays(file, vars(stored))
            crops = np.stack([values[table.split == 'train']] * 2, axis=1)
            features.save_array(features.find_crops(network, name), crops)
    monkeypatch.setattr(  # its cross-validation takes seconds
        'study.accuracy.fit_chosen',
        lambda data, folds: (None, fit_linear(data)),
    )
    subsets = [torch.arange(100), torch.arange(100, 144)]
    monkeypatch.setattr('study.accuracy.find_subsets', lambda _: subsets)
    return tmp_path


@pytest.mark.slow
def test_rows_of_stored_features_are_written_and_others_counted(
    study, monkeypatch, capsys
):
    command = 'tools/research/few_tokens.py', '--stored', '--methods', 'ATC'
    monkeypatch.setattr('sys.argv', [*command])
    few_tokens.main()
    printed = capsys.readouterr().out
    assert 'Without dataset missing: folder missing does not exist' in printed
    assert '3 networks, 7 missing' in printed
    table = pd.read_csv(study / 'few_tokens.csv')
    reduced = table[table.method == 'ATC']
    few = reduced[reduced['count'] == 3]
    assert [*few.features] == ['all layers', 'last layer', 'all layers']
    assert [*few.classifier] == ['ridge', 'ridge', 'fit']
    assert {*reduced['count']} == {1, 3, 5, 10}
    assert (reduced.datasets == 2).all() and (reduced.keys_4 == 0.5).all()
    assert reduced['mean'].iloc[0] > 60
    full = table[(table.method == 'none') & (table.depth == 12)]
    assert (full.agreement == 100).all() and (full.difference == 0).all()
    few_tokens.main()
    again = pd.read_csv(study / 'few_tokens.csv')
    pd.testing.assert_frame_equal(table, again)


def test_features_are_not_extracted_again_if_a_network_has_its_rows():
    network = networks.Network(VIT, 'ATC', 0.5)
    table = pd.DataFrame([dict(rows.identify(network), classifier='ridge')])
    assert not few_tokens.lacks_row(table, network, 'ridge')
    assert few_tokens.lacks_row(table, network, 'fit')
    other = networks.Network(VIT, 'ToMe', 0.5)
    assert few_tokens.lacks_row(table, other, 'ridge')


def test_networks_are_measured_without_crops_before_the_classifier_of_fit():
    candidate = networks.Network(VIT, 'ATC', 0.5)
    other = networks.Network(VIT, 'ToMe', 0.5)
    assert few_tokens.list_measured([candidate, other]) == [
        (candidate, 'ridge'),
        (other, 'ridge'),
        (candidate, 'fit'),
    ]


def test_missing_weights_are_named_and_other_networks_continue(
    study, monkeypatch, capsys
):
    monkeypatch.setattr(networks, 'WEIGHTS', study)
    monkeypatch.setattr(pixels, 'Preparation', None)
    networks.find_pretrained.cache_clear()
    few_tokens.extract(networks.Network(VIT, 'EViT', 0.5), ['some'], 'ridge')
    printed = capsys.readouterr().out
    assert printed.count('\n') == 1
    assert 'Without vit_tiny_EViT_kr50_224px' in printed and VIT in printed
    networks.find_pretrained.cache_clear()


def test_times_are_ratios_to_the_full_network_timed_in_turn(study):
    key = dict(method='ATC', keep_rate=0.5, img_size=224, depth=12)
    other = dict(key, method='ToMe')
    slow = dict(key, ms_1=3.0, full_1=4.0, ms_8=2.0, full_8=4.0)
    fast = dict(other, ms_1=8.0, full_1=8.0, ms_8=4.0, full_8=4.0)
    timed = pd.DataFrame([slow, fast]).assign(architecture='vit_tiny')
    timed.to_csv(study / 'few_tokens_times.csv', index=False)
    rows = [dict(key, network=x) for x in ('deit_tiny', 'x')]
    table = pd.DataFrame([*rows, dict(other, network='vit_tiny')])
    added = times.add_times(table)
    # 3/4 and 1 times the median, 6 ms
    assert added.ms_1.tolist()[::2] == [4.5, 6]
    assert added.ms_8.tolist()[::2] == [2, 4]
    assert np.isnan(added.ms_1.tolist()[1])


def test_the_full_network_is_exported_once_per_batch_size(monkeypatch):
    exported = []

    def export(network, depth, batch):
        exported.append((network.method, batch))
        return lambda: None

    monkeypatch.setattr(times, 'export', export)
    times.export_full.cache_clear()
    for method in ('ATC', 'ToMe'):
        (row,) = times.measure_times(networks.Network(VIT, method, 0.5), 12)
        assert [*row] == ['ms_1', 'full_1', 'ms_8', 'full_8']
    times.export_full.cache_clear()
    assert [exported.count(('', batch)) for batch in (1, 8)] == [1, 1]
    assert len(exported) == 6


@pytest.mark.slow
def test_extracted_features_equal_those_of_the_whole_network(
    shared, tmp_path, monkeypatch
):
    monkeypatch.setattr(features, 'KEPT', tmp_path)
    monkeypatch.setattr(networks, 'WEIGHTS', shared / 'weights')
    photos = [*(shared / 'data/sets/chilli4/test').rglob('*.jpg')][:40]
    splits = ['train'] * 20 + ['test'] * 20
    table = pd.DataFrame(dict(path=map(str, photos), split=splits))
    monkeypatch.setattr(features, 'read_dataset', lambda name: table)
    full, reduced = networks.list_networks(['ToMe'])[::2][:2]
    with torch.inference_mode():
        features.Extraction(full).extract('some')
        extraction = features.Extraction(reduced)
        extraction.extract('some')
        extraction.extract_crops('some')
        crops = np.load(features.find_crops(reduced, 'some'))
        stored = features.load_features(reduced, 'some')
        whole = features.load_pixels(tmp_path / 'pixels', 'some', [], reduced)
        expected, _ = extraction._run(extraction.model, whole)
    assert extraction.skips and stored.features.shape == (40, 6912)
    assert (stored.features == expected).all()
    # features of crops differ
    assert crops.shape == (20, 2, 6912)
    assert 0.1 < np.abs(crops[:, 0] - expected[:20]).mean() < 2
    keys, attention = stored.correlations[:, 4:]
    assert 0.5 < keys[0] < 1 and 0.5 < attention[0] < 1
    assert keys[-1] < keys[0]
