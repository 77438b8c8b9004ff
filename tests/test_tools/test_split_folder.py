# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Lists by split_folder and hold_out_classes."""

import os
import shlex
import shutil
from functools import partial

import numpy as np
import pytest
from mmengine.registry import init_default_scope
from mmengine.runner import Runner
from PIL import Image
from tiny_run import CLASSES, ROOT, end_of, write_images

from mmclca.cli.main import get_parser
from mmclca.configs import read_config
from mmclca.datasets.photos import list_images
from mmclca.datasets.samplers import ClampedBatchSampler

FOLDER = ROOT / 'tools/dataset_converters'
KINDS = ('.jpg', '.JPG', '.png', '.tif', '.TIFF', '.bmp', '.webp', '.Jpeg')


@pytest.fixture
def run(monkeypatch):
    return partial(end_of, monkeypatch, FOLDER / 'split_folder.py')


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


def test_split_is_stratified_by_the_seed_and_keeps_other_classes(
    run, leaves, tmp_path
):
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
    for name, seed in (('a', 1), ('b', 1), ('c', 2)):
        assert run(leaves, '--seed', seed, '--out', tmp_path / name) == 0
    texts = [(tmp_path / n / 'train.txt').read_text() for n in 'abc']
    assert texts[0] == texts[1] != texts[2]
    save(leaves / 'ash/1.png')
    save(leaves / 'ash/2.png')
    run(leaves, '--seed', 1, '--out', tmp_path / 'd')
    oaks = [
        {p for p, _ in read(tmp_path / n, 'val.txt') if '/oak/' in p}
        for n in 'ad'
    ]
    assert oaks[0] == oaks[1] != set()


def test_unusable_files_are_skipped_and_counted(run, leaves, capsys):
    for name in ('.hidden.png', '.trash/old.png', 'notes.TXT', 'a.heic'):
        file = leaves / 'oak' / name
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(b'x')
    save(leaves / 'stray.png')
    (leaves / 'oak/0.png').write_bytes(b'')
    shutil.copy(leaves / 'oak/2.png', leaves / 'oak/copy.png')
    save(leaves / 'yew/only.png')
    (leaves / 'oak').rename(leaves / ' oak')
    save(leaves / 'elm/a\rb.png', 9)
    assert run(leaves) == 0
    out, err = capsys.readouterr()
    for line in ('ending in .heic', 'ending in .txt', 'not in a class'):
        assert f'1 file {line}' in out
    assert '0.png: empty file' in out and 'oak/copy.png = ' in out
    assert 'yew (1)' in err
    assert counts(leaves, 'train.txt') == [8, 1, 3, 1]
    assert counts(leaves, 'val.txt') == [2, 1, 1]
    paths = [path for path, _ in read(leaves, 'train.txt')]
    assert all((leaves / path.strip()).is_file() for path in paths)
    assert not any('a\r' in path for path in paths)


def test_existing_split_is_kept_without_force(run, leaves, capsys):
    assert run(leaves, '--test-fraction', 0.2) == 0
    assert counts(leaves, 'train.txt') == [6, 1, 3]
    assert counts(leaves, 'test.txt') == [2, 0, 1]
    before = (leaves / 'train.txt').read_text()
    assert run(leaves) == 2
    assert 'train.txt' in (error := capsys.readouterr().err)
    assert 'test.txt: ' in error and '--force' in error
    assert (leaves / 'train.txt').read_text() == before
    assert run(leaves, '--force') == 0
    # test images are training images now
    assert not (leaves / 'test.txt').exists()


def load_config(words):
    """Return the config of a printed training command."""
    assert words[:2] == ['python', 'tools/train.py']
    args = get_parser('train').parse_args(words[2:])
    return read_config(ROOT / args.config, args.cfg_options)


def test_printed_command_trains_30_images_with_a_batch_of_32(
    run, leaves, capsys, monkeypatch
):
    for i in range(20):
        save(leaves / f'ash/{i}.webp', i)
    assert run(leaves, '--test-fraction', 0.1) == 0
    command = capsys.readouterr().out.split('train with\n')[1]
    words = shlex.split(command.replace('\\\n', ''))
    config = load_config(words)
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


@pytest.fixture
def hold_out(monkeypatch, tmp_path):
    """Hold out classes of four; the exit code."""
    data = tmp_path / 'data'
    write_images(data, per_class=4)
    (data / 'classes.txt').write_text('\n'.join(CLASSES))
    lines = [
        [f'{name}/{i}.png {label}\n' for label, name in enumerate(CLASSES)]
        for i in range(4)
    ]
    (data / 'few.txt').write_text(''.join(lines[0]))
    (data / 'train.txt').write_text(''.join(sum(lines[:3], [])))
    (data / 'val.txt').write_text(''.join(lines[3]))
    tool = FOLDER / 'hold_out_classes.py'
    return partial(end_of, monkeypatch, tool, data, '--seed')


FEW = ('--train', 'few.txt', '--val', 'train.txt', '--test', 'val.txt')


def test_held_out_classes_are_in_no_other_list(hold_out, tmp_path):
    out = tmp_path / 'lists'
    assert hold_out(3, '--num', 1, '--out', out, *FEW) == 0
    known = (out / 'classes.txt').read_text().split()
    (held_out,) = (out / 'held_out/classes.txt').read_text().split()
    assert known == [name for name in CLASSES if name != held_out]
    seen = set()
    for name, size in dict(train=3, val=6, test=3).items():
        found = read(out, f'{name}.txt')
        assert len(found) == size
        for path, label in found:
            assert (out / path).is_file()
            assert (out / path).parent.name == known[label]
        seen.update(path for path, _ in found)
    unknown = list_images(out / 'held_out/images.txt')
    assert unknown.names == [held_out] * 4
    files = [os.path.realpath(path) for path in unknown.paths]
    assert {path.split('/')[-2] for path in files} == {held_out}
    assert len({*files, *(str((out / path).resolve()) for path in seen)}) == 16


def test_seed_determines_held_out_classes(hold_out, tmp_path):
    drawn = set()
    for seed in range(4):
        out = tmp_path / str(seed)
        assert hold_out(seed, '--num', 2, '--out', out) == 0
        drawn.add((out / 'held_out/classes.txt').read_text())
    assert len(drawn) > 1
    assert [len(read(out, f'{name}.txt')) for name in ('train', 'val')] == [
        6,
        2,
    ]
    assert not (out / 'test.txt').exists()
    assert hold_out(0, '--num', 2, '--out', tmp_path / '0') == 0


def test_hold_out_refuses_wrong_numbers_and_existing_lists(
    hold_out, tmp_path, capsys
):
    out = tmp_path / 'lists'
    assert hold_out(0, '--num', 3, '--out', out) == 2
    assert '1 to 2' in capsys.readouterr().err
    hold_out(0, '--num', 1, '--out', out)
    (out / 'train.txt').write_text('mine')
    assert hold_out(0, '--num', 1, '--out', out) == 2
    assert '--out' in capsys.readouterr().err
    assert (out / 'train.txt').read_text() == 'mine'
    (tmp_path / 'data/few.txt').write_text('oak/1.png 4\nash/1.png\n')
    assert hold_out(0, '--num', 1, '--out', tmp_path / 'new', *FEW) == 2
    error = capsys.readouterr().err
    assert '1: oak/1.png 4' in error and '2: ash/1.png' in error
    assert not (tmp_path / 'new').exists()
