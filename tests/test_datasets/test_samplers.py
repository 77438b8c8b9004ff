# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import pytest
from mmengine.dataset import DefaultSampler
from mmengine.registry import DATASETS, init_default_scope
from mmengine.runner import Runner
from timm.data.distributed_sampler import RepeatAugSampler as TimmSampler

from mmclca.datasets import samplers
from mmclca.datasets.samplers import (
    ClampedBatchSampler,
    MinLengthSampler,
    RepeatAugSampler,
)


def build_loader(number, **batch_sampler):
    """Build a dataloader over 0, 1, ... like mmengine's runner."""
    init_default_scope('mmpretrain')
    if 'Numbers' not in DATASETS:
        DATASETS.register_module(name='Numbers', module=lambda n: range(n))
    loader = dict(
        batch_size=32,
        num_workers=0,
        dataset=dict(type='mmengine.Numbers', n=number),
        sampler=dict(type='DefaultSampler', shuffle=True),
        batch_sampler=dict(type='mmclca.ClampedBatchSampler', **batch_sampler),
        collate_fn=dict(type='default_collate'),
    )
    return Runner.build_dataloader(loader, seed=0)


def batches(loader):
    return [batch.tolist() for batch in loader]


@pytest.mark.parametrize(
    'number, options, sizes',
    [(30, {}, [30]), (32, {}, [32]), (70, dict(drop_last=False), [32, 32, 6])],
)
def test_batch_size_is_reduced_with_one_warning_if_dataset_is_smaller(
    number, options, sizes, monkeypatch
):
    texts, log = [], lambda text, **_: texts.append(text)
    monkeypatch.setattr(samplers, 'print_log', log)
    loader = build_loader(number, **options)
    for _ in range(2):
        found = batches(loader)
        assert [*map(len, found)] == sizes
        assert len({x for batch in found for x in batch}) == sum(sizes)
    assert len(texts) == (number < 32)
    assert all('batch_size=32' in message for message in texts)


def test_batch_size_is_limited_to_images_per_process(monkeypatch):
    monkeypatch.setattr(
        'mmengine.dataset.sampler.get_dist_info', lambda: (1, 4)
    )
    sampler = DefaultSampler(range(30), seed=0)
    (batch,) = ClampedBatchSampler(sampler, 32)
    assert len(batch) == 8  # 30 images in 4 processes, rounded up


@pytest.mark.parametrize(
    'sampler, images, size, term',
    [
        (ClampedBatchSampler, [], 32, 'empty'),
        (MinLengthSampler, range(5), 0, 'min_samples'),
        (MinLengthSampler, range(5), 2.5, 'min_samples'),
    ],
)
def test_samplers_refuse_setting(sampler, images, size, term):
    with pytest.raises(ValueError, match=term):
        sampler(images, size)


def test_small_dataset_is_repeated_within_an_epoch():
    sampler = MinLengthSampler(range(5), min_samples=12, seed=3)
    first, again = [*sampler], [*sampler]
    assert first == again and len(first) == len(sampler) == 12
    assert sorted(first[:5]) == sorted(first[5:10]) == [0, 1, 2, 3, 4]
    assert first[:5] != first[5:10]
    sampler.set_epoch(1)
    assert [*sampler] != first
    large = MinLengthSampler(range(20), min_samples=12, shuffle=False)
    assert [*large] == [*range(20)]


def test_processes_share_an_epoch():
    shares = []
    for rank in range(2):
        sampler = MinLengthSampler(range(5), min_samples=11, seed=3)
        sampler.rank, sampler.world_size = rank, 2
        sampler.total_size = 12
        shares.append([*sampler])
    assert [len(share) for share in shares] == [6, 6]
    assert len({*shares[0], *shares[1]}) == 5


@pytest.mark.parametrize(
    'number, rank, world',
    [(100, 0, 1), (256, 1, 3), (1000, 0, 1), (5001, 1, 3)],
)
def test_repeat_aug_sampler_has_the_epoch_length_of_timm(
    number, rank, world, monkeypatch
):
    module = 'mmpretrain.datasets.samplers.repeat_aug'
    monkeypatch.setattr(f'{module}.get_dist_info', lambda: (rank, world))
    ours = RepeatAugSampler(range(number), num_repeats=3, seed=0)
    theirs = TimmSampler(
        range(number),
        num_replicas=world,
        rank=rank,
        selected_round=256 if number >= 256 else 0,
    )
    assert len(ours) == len(theirs) == len(list(ours))
    if world == 1:  # three repeats follow each other
        drawn = list(ours)[: len(ours) // 3 * 3]
        assert drawn[0::3] == drawn[1::3] == drawn[2::3]
