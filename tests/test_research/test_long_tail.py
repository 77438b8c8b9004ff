# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from tiny_run import ROOT, load_tool, run_tool, write_images

TOOL = ROOT / 'tools/research/long_tail.py'


def test_long_tail_sizes_are_a_geometric_series(tmp_path, monkeypatch):
    write_images(tmp_path, per_class=8)
    run_tool(monkeypatch, TOOL, str(tmp_path), '--least', '1')
    lines = (tmp_path / 'train_lt.txt').read_text().splitlines()
    labels = [int(line.split()[1]) for line in lines]
    assert sorted(map(labels.count, range(4))) == [1, 2, 4, 8]
    assert all((tmp_path / line.split()[0]).is_file() for line in lines)
    long_tail = load_tool(monkeypatch, TOOL)['long_tail']
    images = {name: [*range(9)] for name in 'abcdefgh'}
    assert long_tail(images, 1) == long_tail(images, 1)
    assert long_tail(images, 1) != long_tail(images, 1, seed=1)
