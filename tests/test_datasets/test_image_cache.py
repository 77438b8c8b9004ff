# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Cached images have the same pixels, are shared, up to date and limited."""

import copy
import errno
import os
import random
import shutil
import tempfile
import time

import numpy as np
import pytest
import torch
from mmengine.config import Config
from mmengine.dataset import Compose
from mmengine.logging import MMLogger
from mmengine.runner import Runner
from mmpretrain.datasets import LoadImageFromFile
from PIL import Image
from tiny_run import ROOT, environment, write_images

from mmclca.datasets import CacheImages, image_cache
from mmclca.datasets.batches import without_cache
from mmclca.registry import TRANSFORMS

LOAD = dict(type='LoadImageFromFile')
HEADS = dict(
    square=dict(type='Resize', scale=(48, 48), backend='pillow'),
    keep_ratio=dict(type='Resize', scale=(48, 48), keep_ratio=True),
    edge=dict(type='ResizeEdge', scale=48, edge='short'),
)
TAIL = [
    dict(type='RandomResizedCrop', scale=32),
    dict(type='RandomFlip', prob=0.5),
    dict(type='ColorJitter', brightness=0.5),
    dict(type='PackInputs', meta_keys=('ori_shape', 'scale_factor', 'flip')),
]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """Cache folder."""
    (tmp_path / 'disk').mkdir()
    monkeypatch.setattr(tempfile, 'tempdir', str(tmp_path / 'disk'))
    return tmp_path / 'disk'


@pytest.fixture
def leaves(tmp_path):
    """Sixteen images of different sizes."""
    rng = np.random.default_rng(0)
    (tmp_path / 'leaves').mkdir()
    for i in range(16):
        noise = rng.integers(0, 255, (60 + i, 90 - i, 3), np.uint8)
        Image.fromarray(noise).save(tmp_path / 'leaves' / f'{i:02d}.jpg')
    return sorted(map(str, (tmp_path / 'leaves').iterdir()))


@pytest.fixture
def decoded(monkeypatch):
    """Decoded paths, in order."""
    paths = []
    load = LoadImageFromFile.transform

    def spy(self, results):
        paths.append(results['img_path'])
        return load(self, results)

    monkeypatch.setattr(LoadImageFromFile, 'transform', spy)
    return paths


@pytest.fixture
def warnings(monkeypatch):
    said = []
    monkeypatch.setattr(image_cache, '_warn', said.append)
    return said


def cached(head='square', **options):
    steps = [LOAD, HEADS[head]]
    return TRANSFORMS.build(
        dict(type='mmclca.CacheImages', transforms=steps, **options)
    )


def images_of(step, paths):
    return [step(dict(img_path=path))['img'] for path in paths]


def same(images, others):
    pairs = zip(images, others, strict=True)
    return all(np.array_equal(*pair) for pair in pairs)


def epochs(steps, paths, count):
    """Run a pipeline with seeded random steps."""
    random.seed(0)
    np.random.seed(0)
    torch.manual_seed(0)
    pipeline = Compose([*steps, *map(TRANSFORMS.build, TAIL)])
    return [pipeline(dict(img_path=path)) for path in paths * count]


@pytest.mark.parametrize('head', HEADS)
def test_pipeline_result_is_equal_with_and_without_cache(
    head, leaves, decoded
):
    plain = [TRANSFORMS.build(LOAD), TRANSFORMS.build(HEADS[head])]
    expected = epochs(plain, leaves, count=2)
    for step, times in ((cached(head), 1), (cached(head, disk_mb=0), 2)):
        decoded.clear()
        given = epochs([step], leaves, count=2)
        assert len(decoded) == len(leaves) * times
        for ours, theirs in zip(given, expected, strict=True):
            assert torch.equal(ours['inputs'], theirs['inputs'])
            theirs, ours = theirs['data_samples'], ours['data_samples']
            assert ours.metainfo == theirs.metainfo
            assert ours.metainfo.keys() >= {'ori_shape', 'flip'}


def test_cached_image_stays_if_a_result_is_changed(leaves):
    step = cached()
    (first,), (second,) = (images_of(step, leaves[:1]) for _ in range(2))
    second[:] = 0
    (third,) = images_of(step, leaves[:1])
    assert same([first], [third]) and third.any()


def test_image_is_read_again_if_its_file_changes(leaves, decoded):
    step = cached()
    (old,) = images_of(step, leaves[:1])
    status = os.stat(leaves[0])
    time.sleep(0.01)
    shutil.copy(leaves[1], leaves[0])
    os.utime(leaves[0], ns=(status.st_atime_ns, status.st_mtime_ns))
    new, other = images_of(step, leaves[:2])
    assert same([new], [other]) and not same([new], [old])
    assert decoded == [leaves[0], leaves[0], leaves[1]]


def loader(data, workers, start, **options):
    steps = [LOAD, HEADS['square']]
    head = dict(type='mmclca.CacheImages', transforms=steps, **options)
    more = dict(multiprocessing_context=start) if workers else {}
    return Runner.build_dataloader(
        dict(
            batch_size=4,
            num_workers=workers,
            dataset=dict(
                type='mmpretrain.CustomDataset',
                data_root=str(data),
                pipeline=[head, dict(type='PackInputs')],
                _scope_='mmpretrain',
            ),
            sampler=dict(type='DefaultSampler', shuffle=False),
            collate_fn=dict(type='default_collate'),
            **more,
        )
    )


def pixels(loader):
    return torch.cat([batch['inputs'] for batch in loader])


@pytest.mark.parametrize(
    'start, workers',
    [('fork', 2), pytest.param('spawn', 1, marks=pytest.mark.slow)],
)
def test_main_process_reads_images_cached_by_workers(
    start, workers, tmp_path, folder, monkeypatch
):
    write_images(tmp_path / 'data')
    monkeypatch.undo()  # spawned workers do not inherit it
    monkeypatch.setenv('PYTHONPATH', environment()['PYTHONPATH'])
    options = dict(folder=str(folder))
    with_workers = loader(tmp_path / 'data', workers, start, **options)
    first = pixels(with_workers)
    data = with_workers.dataset
    monkeypatch.setattr(LoadImageFromFile, 'transform', None)
    found = torch.stack([data[i]['inputs'] for i in range(len(data))])
    assert torch.equal(found, first)
    assert torch.equal(pixels(with_workers), first)
    assert not [*folder.iterdir()]


def test_copied_cache_reads_the_same_file(leaves, decoded):
    step = cached()
    other = copy.deepcopy(step)
    images = images_of(step, leaves)
    decoded.clear()
    del step
    assert same(images_of(other, leaves), images) and not decoded


@pytest.mark.parametrize('state', [dict(path='/proc/0/fd/0'), dict(inode=0)])
def test_copied_cache_creates_a_file_if_the_shared_one_is_missing(state):
    kind, (*given, path, inode) = cached().store.__reduce__()
    store = kind(*given, **dict(dict(path=path, inode=inode), **state))
    assert not store.put(bytes(16), dict(img=1))
    assert store.get(bytes(16)) == dict(img=1)


def test_images_are_complete_if_processes_write_at_once():
    store, children = cached().store, []
    for _ in range(4):
        children.append(os.fork())
        if not children[-1]:
            for i in range(16):
                image = np.full((300, 300, 3), i, np.uint8)
                store.put(bytes([i] * 16), dict(img=image))
            os._exit(0)
    assert not any(os.waitpid(child, 0)[1] for child in children)
    for i in range(16):
        assert (store.get(bytes([i] * 16))['img'] == i).all()


@pytest.mark.parametrize('place', [0, 3, 16, 20, 24, 27, 28, 100, 400, -1])
def test_image_is_decoded_again_if_the_file_is_damaged(place, leaves, decoded):
    step = cached()
    expected = images_of(step, leaves[:2])
    number = step.store.file.fileno()
    content = bytearray(os.pread(number, 10**6, 0))
    content[place] ^= 255
    os.ftruncate(number, 0)
    os.write(number, content)
    for reader in (step, copy.deepcopy(step)):
        assert same(images_of(reader, leaves[:2]), expected)
    decoded.clear()
    assert same(images_of(step, leaves[:2]), expected) and not decoded


def test_further_images_are_decoded_if_the_limit_is_reached(
    leaves, decoded, warnings
):
    size = 260  # 5 images of 198 KiB each
    steps = [LOAD, dict(type='Resize', scale=(size, size))]
    step = CacheImages(steps, disk_mb=1)
    expected = images_of(CacheImages(steps, 0), leaves)
    assert same(images_of(step, leaves), expected)
    decoded.clear()
    for reader in (step, copy.deepcopy(step)):
        assert same(images_of(reader, leaves), expected)
    assert decoded == leaves[5:] * 2
    (said,) = warnings
    assert 'disk_mb=1' in said
    kept = os.fstat(step.store.file.fileno()).st_size
    assert 5 * size * size * 3 < kept <= 1 << 20


@pytest.mark.parametrize('fails', [True, False])
def test_further_images_are_decoded_if_the_disk_is_full(
    fails, leaves, decoded, warnings, monkeypatch
):
    step = cached()
    images = images_of(step, leaves[:4])
    write = os.write

    def half(file, content):
        written = write(file, content[: len(content) // 2])
        if fails:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return written

    monkeypatch.setattr(os, 'write', half)
    for reader in (step, copy.deepcopy(step)):
        decoded.clear()
        assert same(images_of(reader, leaves)[:4], images)
        assert decoded == leaves[4:]
    (said,) = warnings
    assert ('No space left' if fails else 'disk is full') in said


def test_log_says_why_a_folder_cannot_be_used(leaves, tmp_path):
    log = tmp_path / 'run.log'
    logger = MMLogger.get_instance('cached', log_file=str(log))
    assert MMLogger.get_current_instance() is logger
    (tmp_path / 'file').touch()
    step = cached(folder=str(tmp_path / 'file'))
    assert step.store is None
    assert 'cannot cache' in log.read_text()
    assert same(images_of(step, leaves), images_of(cached(), leaves))


def test_missing_and_dropped_images_are_handled_by_the_steps(leaves, tmp_path):
    for step in (cached(), cached(disk_mb=0)):
        with pytest.raises(FileNotFoundError, match=r'gone\.jpg'):
            step(dict(img_path=str(tmp_path / 'gone.jpg')))
    with open(leaves[0], 'wb'):
        pass
    step = CacheImages([dict(LOAD, ignore_empty=True)])
    assert step(dict(img_path=leaves[0])) is None
    assert step(dict(img_path=leaves[1]))['img'].shape[2] == 3


@pytest.mark.parametrize(
    'steps, limits, term',
    [
        ([LOAD, dict(type='RandomFlip', prob=0.5)], {}, 'RandomFlip'),
        ([LOAD, dict(type='ColorJitter')], {}, 'ColorJitter'),
        ([LOAD, dict(type='PackInputs')], {}, 'PackInputs'),
        ([LOAD], dict(disk_mb=-1), 'disk_mb'),
    ],
)
def test_cache_refuses_steps_and_limits(steps, limits, term, leaves):
    with pytest.raises(ValueError, match=term):
        CacheImages(steps, **limits)(dict(img_path=leaves[0]))


@pytest.mark.parametrize(
    'name', ['leaves_bs32_224', 'leaves_bs32_448', 'synthetic-leaves_112']
)
def test_configs_cache_images_of_training_and_validation(name):
    cfg = Config.fromfile(ROOT / f'configs/_base_/datasets/{name}.py')
    train, val, test = (
        cfg[f'{split}_dataloader'].dataset.pipeline
        for split in ('train', 'val', 'test')
    )
    assert train[0] == val[0]
    assert train[0].type == 'mmclca.CacheImages'
    assert without_cache(test) == without_cache(val) == test
    assert without_cache(train)[:2] == test[:2]
