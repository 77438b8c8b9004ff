# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from mmengine.config import Config
from tiny_run import ROOT, run_tool

TOOL = ROOT / 'tools/misc/print_config.py'
NAME = 'clca-evit-kr25_deit-tiny-p16_1xb32-50e_leaf40-224px'


def test_what_is_printed_is_the_config(tmp_path, monkeypatch, capsys):
    long = 'a_name_longer_than_a_line_of_a_terminal_' * 4
    option = f'work_dir={long}'
    run_tool(monkeypatch, TOOL, NAME, '--cfg-options', option)
    (tmp_path / 'whole.py').write_text(capsys.readouterr().out)
    whole = Config.fromfile(tmp_path / 'whole.py')
    wanted = Config.fromfile(ROOT / f'configs/clca/{NAME}.py')
    wanted.work_dir = long
    assert whole.to_dict() == wanted.to_dict()
