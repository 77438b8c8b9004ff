# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Cached images have the same pixels, are shared, up to date and limited."""

import copy
import errno
import os
import random
import shutil
import tempfile
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from mmengine.dataset import Compose
from mmengine.runner import Runner
from mmpretrain.datasets import LoadImageFromFile
from PIL import Image
from tiny_run import environment, write_images

from mmclca.datasets import CacheImages, image_cache
from mmclca.datasets.batches import without_cache
from mmclca.registry import TRANSFORMS

LOAD = dict(type='LoadImageFromFile')
SIZE = 310  # three images of 282 KiB in 1 MiB
SQUARE = dict(type='Resize', scale=(SIZE, SIZE), backend='pillow')
EDGE = dict(type='ResizeEdge', scale=48, edge='short')
TAIL = [
    dict(type='RandomResizedCrop', scale=32),
    dict(type='RandomFlip', prob=0.5),
    dict(type='PackInputs', meta_keys=('ori_shape', 'scale_factor', 'flip')),
]


@pytest.fixture(autouse=True)
def folder(monkeypatch, tmp_path_factory):
    """Cache folder.

    Its path is short: workers open sockets there, whose paths have at most
    107 bytes.
    """
    tmp_path_factory.getbasetemp()  # not in this folder, which is removed
    with tempfile.TemporaryDirectory() as path:
        monkeypatch.setattr(tempfile, 'tempdir', path)
        yield Path(path)


@pytest.fixture
def leaves(tmp_path):
    """Eight images of different sizes."""
    rng = np.random.default_rng(0)
    (tmp_path / 'leaves').mkdir()
    for i in range(8):
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


def cached(resize=SQUARE, **options):
    return CacheImages([LOAD, resize], **options)


def images_of(step, paths):
    return [step(dict(img_path=path))['img'] for path in paths]


def same(images, expected):
    pairs = zip(images, expected, strict=True)
    return all(np.array_equal(*pair) for pair in pairs)


def epochs(steps, paths, count):
    """Run a pipeline with seeded random steps."""
    random.seed(0)
    np.random.seed(0)
    torch.manual_seed(0)
    pipeline = Compose([*steps, *map(TRANSFORMS.build, TAIL)])
    return [pipeline(dict(img_path=path)) for path in paths * count]


@pytest.mark.parametrize('resize', [dict(SQUARE, keep_ratio=True), EDGE])
def test_pipeline_result_is_equal_with_and_without_cache(
    resize, leaves, decoded
):
    plain = [TRANSFORMS.build(LOAD), TRANSFORMS.build(resize)]
    expected = epochs(plain, leaves, count=2)
    for step, times in ((cached(resize), 1), (cached(resize, disk_mb=0), 2)):
        decoded.clear()
        results = epochs([step], leaves, count=2)
        assert len(decoded) == len(leaves) * times
        for ours, theirs in zip(results, expected, strict=True):
            assert torch.equal(ours['inputs'], theirs['inputs'])
            theirs, ours = theirs['data_samples'], ours['data_samples']
            assert ours.metainfo == theirs.metainfo
            assert ours.metainfo.keys() >= {'ori_shape', 'flip'}


def test_image_is_read_again_only_if_its_file_changes(leaves, decoded):
    step = cached()
    (first,), (old,) = (images_of(step, leaves[:1]) for _ in range(2))
    first[:] = 0  # a change of a result leaves the cache as it is
    assert same(images_of(step, leaves[:1]), [old]) and old.any()
    status = os.stat(leaves[0])
    time.sleep(0.01)
    shutil.copy(leaves[1], leaves[0])
    os.utime(leaves[0], ns=(status.st_atime_ns, status.st_mtime_ns))
    new, other = images_of(step, leaves[:2])
    assert same([new], [other]) and not same([new], [old])
    assert decoded == [leaves[0], leaves[0], leaves[1]]


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
    monkeypatch.setenv('TMPDIR', str(folder))  # for spawned workers
    monkeypatch.setenv('PYTHONPATH', environment()['PYTHONPATH'])
    head = dict(type='mmclca.CacheImages', transforms=[LOAD, SQUARE])
    loader = Runner.build_dataloader(
        dict(
            batch_size=4,
            num_workers=workers,
            dataset=dict(
                type='mmpretrain.CustomDataset',
                data_root=str(tmp_path / 'data'),
                pipeline=[head, dict(type='PackInputs')],
                _scope_='mmpretrain',
            ),
            sampler=dict(type='DefaultSampler', shuffle=False),
            collate_fn=dict(type='default_collate'),
            multiprocessing_context=start,
        )
    )
    first, data = pixels(loader), loader.dataset
    monkeypatch.setattr(LoadImageFromFile, 'transform', None)
    images = torch.stack([data[i]['inputs'] for i in range(len(data))])
    assert torch.equal(images, first)
    assert torch.equal(pixels(loader), first)
    assert not [*folder.iterdir()]


def test_cached_image_keeps_the_label_of_the_sample(leaves, decoded):
    step, path = cached(), leaves[0]
    labels = [
        step(dict(img_path=path, gt_label=x))['gt_label'] for x in (0, 1)
    ]
    assert labels == [0, 1] and decoded == [path]


def test_cached_image_keeps_values_that_a_step_has_changed(leaves, decoded):
    step, sample = cached(), dict(img_path=leaves[0], img_shape='whole')
    shapes = [step(dict(sample))['img_shape'] for _ in range(2)]
    assert shapes == [(SIZE, SIZE)] * 2 and len(decoded) == 1


def test_copied_cache_reads_the_same_file(leaves, decoded):
    step = cached()
    other = copy.deepcopy(step)
    images = images_of(step, leaves)
    decoded.clear()
    store_class, (*arguments, path, inode) = step.store.__reduce__()
    for state in ((path, 0), ('/proc/0/fd/0', inode)):  # other or no file
        store = store_class(*arguments, *state)
        assert not store.put(bytes(16), dict(img=1))
        assert store.get(bytes(16)) == dict(img=1)
    del step
    assert same(images_of(other, leaves), images) and not decoded


@pytest.mark.parametrize('offset', [0, 20, 27, 28, 100, -1])
def test_image_is_decoded_again_if_the_file_is_damaged(
    offset, leaves, decoded
):
    step = cached()
    expected = images_of(step, leaves[:2])
    number = step.store.file.fileno()
    content = bytearray(os.pread(number, 10**6, 0))
    content[offset] ^= 255
    os.ftruncate(number, 0)
    os.write(number, content)
    for reader in (step, copy.deepcopy(step)):
        assert same(images_of(reader, leaves[:2]), expected)
    decoded.clear()
    assert same(images_of(step, leaves[:2]), expected) and not decoded


def test_further_images_are_decoded_if_the_limit_is_reached(
    leaves, decoded, warnings
):
    step = cached(disk_mb=1)
    assert 'disk_mb=1' in repr(step)
    expected = images_of(cached(disk_mb=0), leaves)
    assert same(images_of(step, leaves), expected)
    decoded.clear()
    for reader in (step, copy.deepcopy(step)):
        assert same(images_of(reader, leaves), expected)
    assert decoded == leaves[3:] * 2
    (said,) = warnings
    assert 'disk_mb=1' in said
    kept = os.fstat(step.store.file.fileno()).st_size
    assert 3 * SIZE * SIZE * 3 < kept <= 1 << 20


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


def test_images_are_decoded_if_they_cannot_be_cached(
    leaves, tmp_path, warnings, monkeypatch
):
    (tmp_path / 'file').touch()
    with monkeypatch.context() as patch:
        patch.setattr(tempfile, 'tempdir', str(tmp_path / 'file'))
        step = cached()
    assert step.store is None and 'cannot cache' in warnings[0]
    assert same(images_of(step, leaves), images_of(cached(), leaves))
    for cache in (step, cached()):
        with pytest.raises(FileNotFoundError, match=r'gone\.jpg'):
            cache(dict(img_path=str(tmp_path / 'gone.jpg')))
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


def test_without_cache_replaces_the_cache_by_its_steps():
    cache = dict(type='mmclca.CacheImages', transforms=[LOAD, TAIL[0]])
    assert without_cache([cache, TAIL[1]]) == [LOAD, *TAIL[:2]]
