# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import argparse
import shlex
import shutil
from functools import partial

import numpy as np
import pytest
from mmengine.config import Config, DictAction
from mmengine.registry import init_default_scope
from mmengine.runner import Runner
from PIL import Image
from tiny_run import ROOT, end_of

from mmclca.datasets.samplers import ClampedBatchSampler

TOOL = ROOT / 'tools/dataset_converters/split_folder.py'
KINDS = ('.jpg', '.JPG', '.png', '.tif', '.TIFF', '.bmp', '.webp', '.Jpeg')


@pytest.fixture
def run(monkeypatch):
    return partial(end_of, monkeypatch, TOOL)


def save(path, number=0):
    path.parent.mkdir(parents=True, exist_ok=True)
    seed = [number, *path.parent.name.encode()]
    noise = np.random.default_rng(seed).integers(0, 255, (12, 12, 3))
    Image.fromarray(noise.astype(np.uint8)).save(path)


@pytest.fixture
def leaves(tmp_path):
    """Folder with 10 beeches (many file types, subfolders), 2 elms, 5 oaks."""
    folder = tmp_path / 'leaves'
    for i in range(10):
        deeper = '' if i % 2 else f'tree {i}/'
        save(folder / f'beech/{deeper}IMG {i}{KINDS[i % 8]}', i)
    for name, number in (('elm', 2), ('oak', 5)):
        for i in range(number):
            save(folder / f'{name}/{i}.png', i)
    return folder


def read(folder, name):
    """Return paths and labels in a list."""
    lines = (folder / name).read_text().splitlines()
    return [(p, int(n)) for p, n in (line.rsplit(' ', 1) for line in lines)]


def counts(folder, name):
    return np.bincount(
        [n for _, n in read(folder, name)], minlength=3
    ).tolist()


def test_stratified_lists_without_copies(run, leaves):
    before = set(leaves.rglob('*'))
    assert run(leaves, '--val-fraction', 0.2) == 0
    new = {file.name for file in set(leaves.rglob('*')) - before}
    assert new == {'train.txt', 'val.txt', 'classes.txt'}
    assert (leaves / 'classes.txt').read_text() == 'beech\nelm\noak\n'
    assert counts(leaves, 'train.txt') == [8, 1, 4]
    assert counts(leaves, 'val.txt') == [2, 1, 1]
    both = read(leaves, 'train.txt') + read(leaves, 'val.txt')
    assert len({path for path, _ in both}) == 17
    for path, label in both:
        assert (leaves / path).is_file()
        assert path.startswith(('beech/', 'elm/', 'oak/')[label])


def test_seed_determines_the_split(run, leaves, tmp_path):
    for name, seed in (('a', 1), ('b', 1), ('c', 2)):
        assert run(leaves, '--seed', seed, '--out', tmp_path / name) == 0
    texts = [(tmp_path / n / 'train.txt').read_text() for n in 'abc']
    assert texts[0] == texts[1] != texts[2]
    (first, _), *_ = read(tmp_path / 'a', 'val.txt')
    assert (tmp_path / 'a' / first).resolve().is_file()


def test_test_fraction_adds_a_list(run, leaves):
    assert run(leaves, '--test-fraction', 0.2) == 0
    assert counts(leaves, 'train.txt') == [6, 1, 3]
    assert counts(leaves, 'val.txt') == [2, 1, 1]
    assert counts(leaves, 'test.txt') == [2, 0, 1]


def test_class_is_in_train_list_only_if_single_image(run, leaves, capsys):
    save(leaves / 'yew/only.png')
    assert run(leaves) == 0
    assert [n for _, n in read(leaves, 'train.txt')].count(3) == 1
    assert 3 not in [n for _, n in read(leaves, 'val.txt')]
    assert 'yew (1)' in capsys.readouterr().err


def test_other_files_are_skipped_and_counted(run, leaves, capsys):
    for name in ('.hidden.png', '.trash/old.png', 'notes.TXT', 'a.heic'):
        file = leaves / 'oak' / name
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(b'x')
    save(leaves / 'stray.png')
    assert run(leaves) == 0
    assert counts(leaves, 'train.txt') == [8, 1, 4]
    out = capsys.readouterr().out
    for line in ('ending in .heic', 'ending in .txt', 'not in a class'):
        assert f'1 file {line}' in out


def test_unreadable_and_duplicate_images_are_skipped(run, leaves, capsys):
    (leaves / 'oak/0.png').write_bytes(b'')
    whole = (leaves / 'oak/1.png').read_bytes()
    (leaves / 'oak/1.png').write_bytes(whole[: len(whole) // 2])
    shutil.copy(leaves / 'oak/2.png', leaves / 'oak/copy.png')
    assert run(leaves) == 0
    out = capsys.readouterr().out
    assert '2 unreadable (oak/0.png: empty file; oak/1.png: ' in out
    assert '(oak/copy.png = oak/2.png)' in out
    assert counts(leaves, 'train.txt') == [8, 1, 2]
    assert counts(leaves, 'val.txt') == [2, 1, 1]


def test_existing_split_is_kept_without_force(run, leaves, capsys):
    assert run(leaves, '--test-fraction', 0.2) == 0
    assert run(leaves, '--test-fraction', 0.2) == 0
    before = (leaves / 'train.txt').read_text()
    assert run(leaves) == 2
    assert 'train.txt' in (error := capsys.readouterr().err)
    assert 'test.txt: ' in error and '--force' in error
    assert (leaves / 'train.txt').read_text() == before
    assert run(leaves, '--force') == 0
    assert counts(leaves, 'train.txt') == [8, 1, 4]
    assert not (
        leaves / 'test.txt'
    ).exists()  # its images are training images now


def printed_command(capsys):
    out = capsys.readouterr().out
    return out.split('train with\n')[1].strip()


def load_config(command):
    """Return the config with the options in a printed command."""
    words = shlex.split(command.replace('\\\n', ''))
    assert words[:2] == ['python', 'tools/train.py']
    parser = argparse.ArgumentParser()
    parser.add_argument('config')
    parser.add_argument('--cfg-options', nargs='+', action=DictAction)
    args = parser.parse_args(words[2:])
    config = Config.fromfile(ROOT / args.config)
    config.merge_from_dict(args.cfg_options)
    return config


def test_printed_command_trains_30_images_with_a_batch_of_32(
    run, leaves, capsys
):
    for i in range(20):
        save(leaves / f'ash/{i}.webp', i)
    assert run(leaves, '--test-fraction', 0.1) == 0
    config = load_config(printed_command(capsys))
    assert config.model.head.num_classes == 4
    init_default_scope('mmpretrain')
    for name in ('train', 'val', 'test'):
        loader = config[f'{name}_dataloader'].copy()
        loader.update(num_workers=0, persistent_workers=False)
        loader = Runner.build_dataloader(loader, seed=0)
        assert len(loader.dataset) == len(read(leaves, f'{name}.txt'))
        assert loader.dataset.CLASSES == ('ash', 'beech', 'elm', 'oak')
        if name == 'train':
            assert isinstance(loader.batch_sampler, ClampedBatchSampler)
            assert len(loader.dataset) < 32
            sizes = [len(batch['inputs']) for batch in loader]
            assert sizes == [32] * 8  # the list repeats


def test_lists_can_be_read_if_folder_begins_with_space(run, leaves):
    (leaves / 'oak').rename(leaves / ' oak')
    save(leaves / 'elm/a\rb.png', 9)
    assert run(leaves) == 0
    paths = [path for path, _ in read(leaves, 'train.txt')]
    assert all((leaves / path.strip()).is_file() for path in paths)
    assert (leaves / 'classes.txt').read_text() == 'beech\nelm\noak\n'
    assert not any('a\r' in path for path in paths)


def test_split_of_class_is_independent_of_other_classes(run, leaves, tmp_path):
    run(leaves, '--out', tmp_path / 'a')
    save(leaves / 'ash/1.png')
    save(leaves / 'ash/2.png')
    run(leaves, '--out', tmp_path / 'b')
    oaks = [
        {p for p, _ in read(tmp_path / n, 'val.txt') if '/oak/' in p}
        for n in 'ab'
    ]
    assert oaks[0] == oaks[1] != set()
