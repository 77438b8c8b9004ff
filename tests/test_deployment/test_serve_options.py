# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Options to bring the web app to a phone."""

import pytest

from mmclca.cli import Parser
from mmclca.cli.commands import export
from mmclca.errors import Error
from mmclca.export_formats import FORMATS


def parse(*options):
    parser = Parser('')
    export.add_arguments(parser)
    args = parser.parse_args(['model', *options])
    return export.check(args, FORMATS[args.format])


@pytest.mark.parametrize(
    'options, message',
    [
        (['--serve'], '--serve needs --web'),
        (['--web', '--single-file', '--serve'], '--serve needs --web'),
        (['--web', '--port', '9'], '--port needs --serve'),
        (['--web', '--host', '10.0.0.1'], '--host needs --serve'),
        (['--single-file'], '--single-file needs --web'),
        (['--web', '--single-file', '--out', 'a'], 'ending in .html'),
    ],
)
def test_options_are_refused_if_they_do_not_fit(options, message):
    with pytest.raises(Error, match=message):
        parse(*options)


def test_single_file_is_written_next_to_the_model(tmp_path):
    settings, export_format = parse('--web', '--single-file')
    assert settings['single_file'] and not export_format.is_folder
    assert export_format.name_file(tmp_path / 'model.pth').name == 'web.html'


def test_app_is_a_folder_if_it_is_served(tmp_path):
    _, export_format = parse('--web', '--serve', '--port', '8444')
    assert export_format is FORMATS['web']


def test_single_file_is_listed_as_an_export():
    assert FORMATS['web'].list_patterns() == ['web/model.onnx', 'web.html']
    assert FORMATS['onnx'].list_patterns() == ['*.onnx']
