# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Files with changed bytes or values are read, or refused in one line."""

import json
import pickle
import runpy
import sys
from unittest.mock import patch

import numpy as np
import onnx
import pyarrow
import pytest
import torch
from fuzzing import changed, fuzz, mutated, one_of
from hostile import few_and_many
from mmengine.config import Config
from pyarrow import parquet
from quick_runs import make_quick
from report_folder import write_folder
from tiny_export import INFER
from tiny_model import tiny_folder as tiny_folder
from tiny_run import ROOT
from yapf.yapflib import yapf_api

from mmclca.apis import TokenReductionInferencer
from mmclca.building import config_errors
from mmclca.checkpoints.checkpoint import Checkpoint
from mmclca.checkpoints.gate.photo_table import compute_sha256
from mmclca.checkpoints.gate.stored_config import (
    read_stored_classes,
    read_stored_config,
)
from mmclca.checkpoints.opening import open_checkpoint
from mmclca.cli.commands import train
from mmclca.cli.main import get_parser
from mmclca.datasets.batches import read_image
from mmclca.datasets.image_files import check_image
from mmclca.datasets.levels import read_levels
from mmclca.datasets.photos import list_images, read_photos
from mmclca.datasets.photos.copies import summarize_images
from mmclca.datasets.ultra_fgvc import importing, info, layouts
from mmclca.engine.runner import build_runner
from mmclca.evaluation.open_set import read_threshold, write_threshold
from mmclca.fitting.fit_folder import FitFolder
from mmclca.fitting.report import write_report

DATA = ROOT / 'tests/data/files'
COTTON = info.get_info('cotton80')
SCRIPT = runpy.run_path(str(INFER))
IMAGE = np.zeros((50, 40, 3), np.uint8)


def contents(folder):
    """Return the content of each file in a folder, by its suffix."""
    files = sorted((DATA / folder).iterdir())
    return [(file.suffix, file.read_bytes()) for file in files]


def settings_in(tiny):
    """Return the config of the tiny model as dicts and lists."""
    return json.loads(json.dumps(Config.fromfile(tiny / 'tiny.py').to_dict()))


def images(tiny, folder):
    def read(case):
        path = folder / 'leaf.jpg'
        path.write_bytes(case)
        summarize_images([str(path)])
        check_image(case, quick=True)
        SCRIPT['read'](path)
        read_image(case)

    return mutated(*(content for _, content in contents('images'))), read


def config_files(tiny, folder):
    with patch.object(sys, 'argv', ['train.py', 'code.py']):
        args = get_parser('train').parse_args()

    def read(case):
        is_code = isinstance(case, bytes)
        file = folder / ('code.py' if is_code else 'settings.json')
        file.write_bytes(case if is_code else json.dumps(case).encode())
        args.config = str(file)
        with config_errors(file):
            build_runner(train.configure(args))

    code = (tiny / 'tiny.py').read_bytes()
    return mutated(code) | changed(settings_in(tiny)), read


def stored_configs(tiny, folder):
    found = open_checkpoint(str(tiny / 'tiny.pth'))

    def read(case):
        if isinstance(case, bytes):
            text = case.decode('utf-8', 'replace')
        else:
            pairs = case.items() if isinstance(case, dict) else [('x', case)]
            text = ''.join(f'{name} = {value!r}\n' for name, value in pairs)
        contents = dict(found, meta=dict(cfg=text))
        read_stored_config(Checkpoint(contents, 'tiny.pth'))

    code = found['meta']['cfg'].encode()
    return mutated(code) | changed(settings_in(tiny)), read


def checkpoints(tiny, folder):
    names = ('tiny.pth', 'tiny.safetensors')
    texts = [(tiny / name).read_bytes() for name in names]
    whole = open_checkpoint(str(tiny / 'tiny.pth'))
    weights = {k: v for k, v in whole['state_dict'].items() if 'fc' in k}
    whole = dict(meta=whole['meta'], state_dict=weights, history=np.float64(3))
    texts.append(pickle.dumps(dict(a=1)))
    np.savez(folder / 'small.npz', a=np.ones(3))
    texts.append((folder / 'small.npz').read_bytes())
    path = folder / 'small.pth'

    def read(case):
        if isinstance(case, bytes):
            path.write_bytes(case)
        else:
            torch.save(case, path)
        read_stored_classes(open_checkpoint(str(path)))

    return mutated(*texts) | changed(whole), read


def models(tiny, folder):
    whole = open_checkpoint(str(tiny / 'tiny.pth'))
    weights = dict(whole['state_dict'])
    del weights['backbone.cache.clr']  # made of other weights

    def read(case):
        torch.save(case, folder / 'model.pth')
        TokenReductionInferencer(folder / 'model.pth', device='cpu')(IMAGE)

    return changed(dict(meta=whole['meta'], state_dict=weights)), read


def model_folders(tiny, folder):
    table = write_folder(folder) / 'photographs.csv'
    model = TokenReductionInferencer(tiny / 'tiny.pth', device='cpu').model
    write_threshold(folder / 'threshold.json', model, 'energy', 0.5)
    opened = [x.path for x in FitFolder(folder).read_used_photos()]
    cells = ['digest', *map(compute_sha256, opened), '']
    lines = zip(table.read_text().splitlines(), cells, strict=True)
    table.write_text('\n'.join(map(','.join, lines)))
    write_report(folder, opened)
    known = {x.name: x.read_bytes() for x in folder.iterdir() if x.is_file()}

    def read(case):
        for name, content in {**known, case[0]: case[1]}.items():
            is_file = isinstance(content, bytes)
            content = content if is_file else json.dumps(content).encode()
            (folder / name).write_bytes(content)
        read_threshold(folder / 'threshold.json', model)
        write_report(folder)

    values = {x: json.loads(known[x]) for x in known if x.endswith('json')}
    return one_of(known, mutated) | one_of(values, changed), read


def tables(tiny, folder):
    for i in range(3):
        (folder / f'{i}.png').touch()

    def read(case):
        path = folder / f'table{case[0]}'
        path.write_bytes(case[1])
        read_levels(path)
        read_photos(folder, path, 'species')

    return one_of(contents('tables'), mutated), read


def lists(tiny, folder):
    (folder / 'anno').mkdir()
    known = {
        'classes.txt': b'ash\nelm\n',
        'val.txt': b'a.png 0\nb c.png 1\n',
        'train.csv': b'class_id,dir\n0,1/a.png\n1,2/b.png\n',
        'anno/train.txt': b'001_1.png 1\n002_1.png 2\n',
    }

    def read(case):
        for name, content in {**known, case[0]: case[1]}.items():
            (folder / name).write_bytes(content)
        list_images(folder / 'val.txt')
        layouts.read_csv(folder, COTTON)
        layouts.read_released(folder, COTTON)

    return one_of(known, mutated), read


def onnx_files(tiny, folder):
    path, model = folder / 'model.onnx', onnx.load(DATA / 'model.onnx')
    facts = {x.key: json.loads(x.value) for x in model.metadata_props}

    def read(case):
        if isinstance(case, dict):
            texts = {key: json.dumps(case[key]) for key in case}
            onnx.helper.set_model_props(model, texts)
            case = model.SerializeToString()
        path.write_bytes(case if isinstance(case, bytes) else b'')
        try:
            SCRIPT['Classifier'](str(path), 1)(IMAGE, 2)
        except SystemExit as end:
            assert end.code == 2

    return mutated((DATA / 'model.onnx').read_bytes()) | changed(facts), read


def parquet_files(tiny, folder):
    path = folder / 'cotton80.parquet'
    rows = parquet.read_table(DATA / path.name).to_pylist()

    def read(case):
        if isinstance(case, bytes):
            path.write_bytes(case)
        else:
            try:
                parquet.write_table(pyarrow.Table.from_pylist(case), path)
            except Exception:  # not rows
                return
        layouts.read_parquet(path, COTTON)
        published = importing.find_set(path, COTTON)
        importing.import_set(published, COTTON, partial=True)

    return mutated((DATA / path.name).read_bytes()) | changed(rows), read


READERS = (
    *(images, config_files, stored_configs, checkpoints, models),
    *(model_folders, tables, lists, onnx_files, parquet_files),
)


@few_and_many(8, 1000)
@pytest.mark.parametrize('files', READERS)
def test_changed_file_is_read_or_refused_in_one_line(
    files, tries, attack, tiny_folder, tmp_path, monkeypatch
):
    make_quick(monkeypatch)
    monkeypatch.setattr(yapf_api, 'FormatCode', lambda text, **_: (text, True))
    monkeypatch.setattr('mmengine.runner.runner.collect_env', dict)
    monkeypatch.chdir(tmp_path)
    name = f'changed {files.__name__.replace("_", " ")}'
    clear = files is not config_files  # which are code
    fuzz(attack, name, tries, *files(tiny_folder, tmp_path), clear)
