# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Images decoded once: the same pixels, shared, fresh and within limits."""

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
    """A folder for images of this test."""
    (tmp_path / 'disk').mkdir()
    monkeypatch.setattr(image_cache, '_SPARE', 0)
    monkeypatch.setattr(tempfile, 'tempdir', str(tmp_path / 'disk'))
    return tmp_path / 'disk'


@pytest.fixture
def leaves(tmp_path):
    """Sixteen images of sixteen shapes."""
    rng = np.random.default_rng(0)
    (tmp_path / 'leaves').mkdir()
    for i in range(16):
        noise = rng.integers(0, 255, (60 + i, 90 - i, 3), np.uint8)
        Image.fromarray(noise).save(tmp_path / 'leaves' / f'{i:02d}.jpg')
    return sorted(map(str, (tmp_path / 'leaves').iterdir()))


@pytest.fixture
def decoded(monkeypatch):
    """The paths that were decoded."""
    paths = []
    load = LoadImageFromFile.transform

    def spy(self, results):
        paths.append(results['img_path'])
        return load(self, results)

    monkeypatch.setattr(LoadImageFromFile, 'transform', spy)
    return paths


@pytest.fixture
def warnings(monkeypatch):
    """What was warned of."""
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
    """Whole pipelines with their random steps, seeded."""
    random.seed(0)
    np.random.seed(0)
    torch.manual_seed(0)
    pipeline = Compose([*steps, *map(TRANSFORMS.build, TAIL)])
    return [pipeline(dict(img_path=path)) for path in paths * count]


@pytest.mark.parametrize('head', HEADS)
def test_same_pixels_through_a_whole_pipeline(head, leaves, decoded):
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


def test_cached_image_is_ones_own(leaves):
    step = cached()
    (first,) = images_of(step, leaves[:1])
    (second,) = images_of(step, leaves[:1])
    assert second.flags.writeable
    second[:] = 0
    (third,) = images_of(step, leaves[:1])
    assert same([first], [third]) and third.any()


def test_changed_file_is_read_anew(leaves, decoded):
    step = cached()
    (old,) = images_of(step, leaves[:1])
    status = os.stat(leaves[0])
    time.sleep(0.01)
    shutil.copy(leaves[1], leaves[0])  # now of another size
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


def filled(step):
    """The images that are in the file."""
    step.store._find_new()
    return step.store.places


@pytest.mark.parametrize(
    'start, workers',
    [('fork', 2), pytest.param('spawn', 1, marks=pytest.mark.slow)],
)
def test_workers_share_images(start, workers, tmp_path, folder, monkeypatch):
    """The main process need not decode images that workers have decoded."""
    write_images(tmp_path / 'data')
    monkeypatch.undo()  # a spawned worker knows of no other folders
    monkeypatch.setenv('PYTHONPATH', environment()['PYTHONPATH'])
    options = dict(folder=str(folder))
    with_workers = loader(tmp_path / 'data', workers, start, **options)
    first = pixels(with_workers)
    data = with_workers.dataset
    step = data.pipeline.transforms[0]
    assert len(filled(step)) == len(data)
    monkeypatch.setattr(LoadImageFromFile, 'transform', None)
    found = torch.stack([data[i]['inputs'] for i in range(len(data))])
    assert torch.equal(found, first)
    assert torch.equal(pixels(with_workers), first)
    assert not [*folder.iterdir()]


def test_image_cache_is_shared_if_it_is_copied(leaves, decoded):
    step = cached()
    other = copy.deepcopy(step)
    images = images_of(step, leaves)
    decoded.clear()
    del step
    assert same(images_of(other, leaves), images) and not decoded


@pytest.mark.parametrize('state', [dict(path='/proc/0/fd/0'), dict(inode=0)])
def test_image_cache_opens_a_file_if_the_shared_one_is_gone(state, folder):
    kind, (*given, path, inode) = cached().store.__reduce__()
    store = kind(*given, **dict(dict(path=path, inode=inode), **state))
    assert not store.put(bytes(16), dict(img=1))
    assert store.get(bytes(16)) == dict(img=1)


def test_image_cache_keeps_images_whole_if_workers_add_at_once(tmp_path):
    write_images(tmp_path / 'data')
    data = loader(tmp_path / 'data', 4, 'fork').dataset
    step = data.pipeline.transforms[0]
    children = []
    for _ in range(4):
        children.append(os.fork())
        if not children[-1]:
            for i in range(len(data)):
                image = np.full((300, 300, 3), i, np.uint8)
                step.store.put(bytes([i] * 16), dict(img=image))
            os._exit(0)
    assert not any(os.waitpid(child, 0)[1] for child in children)
    for i in range(len(data)):
        assert (step.store.get(bytes([i] * 16))['img'] == i).all()


@pytest.mark.parametrize('place', [0, 3, 16, 20, 24, 27, 28, 100, 400, -1])
def test_image_cache_decodes_again_if_the_file_is_damaged(
    place, leaves, decoded
):
    step = cached()
    expected = images_of(step, leaves[:2])
    number = step.store.file.fileno()
    content = os.pread(number, 10**6, 0)
    content = bytearray(content)
    content[place] ^= 255
    os.ftruncate(number, 0)
    os.write(number, content)
    for reader in (step, copy.deepcopy(step)):
        assert same(images_of(reader, leaves[:2]), expected)
    decoded.clear()
    assert same(images_of(step, leaves[:2]), expected) and not decoded


def test_limit(leaves, decoded, warnings, monkeypatch):
    """What fits is kept; the rest is decoded, and said once."""
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
    monkeypatch.setattr(image_cache, '_SPARE', 1.0)  # of the disk, for others
    assert 'full' in cached().store.put(bytes(16), {})


def test_full_or_broken_disk(leaves, decoded, warnings, monkeypatch):
    """What is there is read on; the rest is decoded, and said once."""
    step = cached()
    images = images_of(step, leaves[:4])
    write = os.write

    def half(file, content):
        write(file, content[: len(content) // 2])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, 'write', half)
    for reader in (step, copy.deepcopy(step)):
        decoded.clear()
        assert same(images_of(reader, leaves)[:4], images)
        assert decoded == leaves[4:]
    (said,) = warnings
    assert 'caching in' in said
    assert 'No space left on device' in said


def test_folder_that_cannot_be_used(leaves, tmp_path):
    """The log of the run says so."""
    logger = MMLogger.get_instance(
        'cached', log_file=str(tmp_path / 'run.log')
    )
    assert MMLogger.get_current_instance() is logger
    (tmp_path / 'file').touch()
    step = cached(folder=str(tmp_path / 'file'))
    assert step.store is None
    (said,) = (tmp_path / 'run.log').read_text().splitlines()
    assert 'cannot cache' in said
    assert same(images_of(step, leaves), images_of(cached(), leaves))


def test_missing_image_is_an_error_as_before(tmp_path, decoded):
    path = str(tmp_path / 'missing.jpg')
    for step in (cached(), cached(disk_mb=0)):
        with pytest.raises(FileNotFoundError, match='missing.jpg'):
            step(dict(img_path=path))


def test_steps_that_leave_an_image_out(leaves, decoded):
    load = dict(type='LoadImageFromFile', ignore_empty=True)
    with open(leaves[0], 'wb'):
        pass
    step = CacheImages([load])
    assert step(dict(img_path=leaves[0])) is None
    assert step(dict(img_path=leaves[1]))['img'].shape[2] == 3


@pytest.mark.parametrize(
    'steps, limits, message',
    [
        ([LOAD, dict(type='RandomFlip', prob=0.5)], {}, 'RandomFlip'),
        ([LOAD, dict(type='ColorJitter')], {}, 'after CacheImages'),
        ([LOAD], dict(disk_mb=-1), 'disk_mb=-1'),
    ],
)
def test_what_cannot_be_cached(steps, limits, message):
    with pytest.raises(ValueError, match=message):
        CacheImages(steps, **limits)


def test_packed_samples_cannot_be_cached(leaves):
    step = CacheImages([LOAD, dict(type='PackInputs')])
    with pytest.raises(ValueError, match='PackInputs'):
        step(dict(img_path=leaves[0]))


@pytest.mark.parametrize(
    'name', ['leaves_bs32_224', 'leaves_bs32_448', 'synthetic-leaves_112']
)
def test_configs_train_and_validate_with_it(name):
    """Tests do not: inferencers read images in their own way."""
    cfg = Config.fromfile(ROOT / f'configs/_base_/datasets/{name}.py')
    train, val, test = (
        cfg[f'{split}_dataloader'].dataset.pipeline
        for split in ('train', 'val', 'test')
    )
    assert train[0] == val[0]
    assert train[0].type == 'mmclca.CacheImages'
    assert without_cache(test) == without_cache(val) == test
    assert without_cache(train)[:2] == test[:2]
