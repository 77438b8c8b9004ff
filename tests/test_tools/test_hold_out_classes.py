# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import os

import pytest
from tiny_run import CLASSES, ROOT, end_of, write_images

from mmclca.datasets.photographs import images_at

TOOL = ROOT / 'tools/dataset_converters/hold_out_classes.py'


@pytest.fixture
def hold_out(monkeypatch, tmp_path):
    """Run the tool on four classes; its exit code."""
    write_images(tmp_path / 'data', per_class=4)
    (tmp_path / 'data/classes.txt').write_text('\n'.join(CLASSES))
    lines = [
        [f'{name}/{i}.png {label}\n' for label, name in enumerate(CLASSES)]
        for i in range(4)
    ]
    data = tmp_path / 'data'
    (data / 'few.txt').write_text(''.join(lines[0]))
    (data / 'train.txt').write_text(''.join(sum(lines[:3], [])))
    (data / 'test.txt').write_text(''.join(lines[3]))

    def hold_out(*arguments):
        lists = '--train', 'few.txt', '--val', 'train.txt'
        lists += '--test', 'test.txt'
        return end_of(monkeypatch, TOOL, data, *lists, *arguments)

    return hold_out


def pairs(file):
    return [line.split() for line in file.read_text().splitlines()]


def test_held_out_classes_are_in_no_other_list(hold_out, tmp_path):
    out = tmp_path / 'lists'
    assert hold_out('--num', 1, '--seed', 3, '--out', out) == 0
    known = (out / 'classes.txt').read_text().split()
    (held_out,) = (out / 'held_out/classes.txt').read_text().split()
    assert known == [name for name in CLASSES if name != held_out]
    sizes = dict(train=3, val=6, test=3)
    seen = set()
    for name, size in sizes.items():
        found = pairs(out / f'{name}.txt')
        assert len(found) == size
        for path, label in found:
            assert (out / path).is_file()
            assert (out / path).parent.name == known[int(label)]
        seen.update(path for path, _ in found)
    unknown = images_at(out / 'held_out/images.txt')
    assert unknown.names == [held_out] * 4
    files = [os.path.realpath(path) for path in unknown.paths]
    assert {path.split('/')[-2] for path in files} == {held_out}
    assert len({*files, *(str((out / path).resolve()) for path in seen)}) == 16


def test_hold_out_works_without_test_list(hold_out, tmp_path, monkeypatch):
    out = tmp_path / 'lists'
    data = tmp_path / 'data'
    (data / 'test.txt').rename(data / 'val.txt')
    assert end_of(monkeypatch, TOOL, data, '--num', 1, '--out', out) == 0
    assert len(pairs(out / 'train.txt')) == 9
    assert len(pairs(out / 'val.txt')) == 3
    assert not (out / 'test.txt').exists()


def test_seed_determines_held_out_classes(hold_out, tmp_path):
    drawn = set()
    for seed in range(4):
        out = tmp_path / str(seed)
        hold_out('--num', 2, '--seed', seed, '--out', out)
        drawn.add((out / 'held_out/classes.txt').read_text())
    assert len(drawn) > 1
    assert hold_out('--num', 2, '--seed', 0, '--out', tmp_path / '0') == 0


def test_hold_out_refuses_wrong_numbers_and_existing_lists(
    hold_out, tmp_path, capsys
):
    out = tmp_path / 'lists'
    assert hold_out('--num', 3, '--out', out) == 2
    assert '1 to 2' in capsys.readouterr().err
    hold_out('--num', 1, '--seed', 0, '--out', out)
    before = (out / 'train.txt').read_text()
    (out / 'train.txt').write_text('mine')
    assert hold_out('--num', 1, '--out', out) == 2
    assert '--out' in capsys.readouterr().err
    assert (out / 'train.txt').read_text() == 'mine' != before
    (tmp_path / 'data/few.txt').write_text('oak/1.png 4\nash/1.png\n')
    assert hold_out('--num', 1, '--out', tmp_path / 'new') == 2
    error = capsys.readouterr().err
    assert '1: oak/1.png 4' in error and '2: ash/1.png' in error
    assert not (tmp_path / 'new').exists()
