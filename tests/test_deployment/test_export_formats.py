# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Every registered format of ``export``."""

import inspect
from importlib import import_module
from pathlib import Path

import pytest
from installed import NEEDS_COMPILER
from tiny_export import write_model
from tiny_run import ROOT

from mmclca import Error
from mmclca.apis import TokenReductionInferencer
from mmclca.deployment import web_app
from mmclca.export_formats import (
    FORMATS,
    ExportOption,
    find_format,
    list_options,
)
from mmclca.fitting.exporting import export_model

DEFAULTS = {option.name: option.default for option in list_options()}
formats = pytest.mark.parametrize('each', FORMATS.values(), ids=FORMATS)


@formats
def test_format_takes_the_options_of_its_writer(each):
    module = import_module(f'mmclca.deployment.{each.module}')
    source, out, *keywords = inspect.signature(module.write).parameters.items()
    assert (source[0], out[0]) == ('source', 'out')
    assert {name: parameter.default for name, parameter in keywords} == {
        option.name: option.default for option in each.options
    }
    assert all(x.kind == x.KEYWORD_ONLY for _, x in keywords)


@formats
def test_format_is_in_the_table_of_the_docs(each):
    page = (ROOT / 'docs/deployment.md').read_text()
    file = each.file.replace('*', 'NAME') + '/' * each.is_folder
    assert f'| `{each.flag}` | {each.summary} | `{file}` |' in page
    options = page + (ROOT / 'docs/web_app.md').read_text()
    assert all(f'`{x.flag}' in options for x in each.options)


@formats
def test_find_format_selects_the_format_by_the_exported_files(each):
    out = each.name_file(Path('leaves', 'model.pth'))
    assert find_format(out / each.model_file) is each


@formats
def test_format_refuses_options_of_other_formats(each):
    names = {option.name for option in each.options}
    assert each.select_options(DEFAULTS) == {x: DEFAULTS[x] for x in names}
    for name in DEFAULTS.keys() - names:
        flag = ExportOption(name, '').flag
        with pytest.raises(Error, match=f'{flag} needs .*, found'):
            each.select_options(DEFAULTS | {name: 'other'})


@NEEDS_COMPILER
@pytest.mark.slow
@formats
def test_format_is_written_with_the_outputs_of_the_model(
    each, tmp_path, monkeypatch
):
    if not web_app._RUNTIME.is_file():  # downloaded by make install
        monkeypatch.setattr(web_app, '_RUNTIME', web_app._SOURCES / 'app.js')
    _, checkpoint, _ = write_model(tmp_path)
    inferencer = TokenReductionInferencer(
        tmp_path / 'tiny.py', checkpoint, device='cpu'
    )
    out = each.name_file(Path(checkpoint))
    exported = export_model(inferencer, str(checkpoint), each, out, {})
    assert 0 <= exported.difference < 1e-4
    assert exported.files and all(x.is_file() for x in exported.files)
    assert out.is_dir() == each.is_folder and out.parent == tmp_path
