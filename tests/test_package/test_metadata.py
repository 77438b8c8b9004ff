# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Metadata for PyPI, conda-forge, Zenodo and citations agree."""

import json
import re
import runpy
import subprocess

import pytest
import yaml
from setuptools.config.pyprojecttoml import load_file
from tiny_run import ROOT, run_python

import mmclca
from mmclca.cli.main import get_parser

PROJECT = load_file(ROOT / 'pyproject.toml')['project']
CITATION = yaml.safe_load((ROOT / 'CITATION.cff').read_text('utf-8'))
ZENODO = json.loads((ROOT / '.zenodo.json').read_text('utf-8'))
RECIPE = yaml.safe_load((ROOT / 'recipe/recipe.yaml').read_text('utf-8'))
CHANGELOG = (ROOT / 'CHANGELOG.md').read_text('utf-8')


def test_version_is_the_same_everywhere():
    version, date = re.search(
        r'## \[([\d.]+)\] - (\d{4}-\d\d-\d\d)\n', CHANGELOG
    ).groups()
    assert version == mmclca.__version__
    assert CITATION['version'] == ZENODO['version'] == version
    assert RECIPE['context']['version'] == version
    assert str(CITATION['date-released']) == date
    assert ZENODO['publication_date'] == date


def test_zenodo_and_citation_agree():
    for zenodo, citation in [
        ('title', 'title'),
        ('description', 'abstract'),
        ('keywords', 'keywords'),
        ('license', 'license'),
        ('upload_type', 'type'),
        ('creators', 'authors'),
    ]:
        assert ZENODO[zenodo] == CITATION[citation], zenodo
    papers = [x['value'] for x in CITATION['references'][0]['identifiers']]
    related = [x['identifier'] for x in ZENODO['related_identifiers']]
    assert papers == related
    assert {*CITATION['keywords']} <= {*PROJECT['keywords']}
    assert PROJECT['license'] == CITATION['license']
    assert RECIPE['about']['license'] == CITATION['license']


def test_addresses_agree():
    urls = PROJECT['urls']
    assert CITATION['references'][0]['url'] == urls['Paper']
    assert all(url.startswith('https://') for url in urls.values())
    assert CITATION.get('repository-code') == urls.get('Repository')
    assert RECIPE['about'].get('repository') == urls.get('Repository')


def test_recipe_has_the_requirements_of_pyproject():
    path = ROOT / 'tools/dev'
    code = f'import sys; sys.path.insert(0, {str(path)!r})'
    code += (
        '; from write_recipe import *; print(*list_requirements(), sep="|")'
    )
    run = run_python('-W', 'ignore', '-c', code, cwd=ROOT)
    requirements = run.stdout.strip().split('|')
    fix = 'run: python tools/dev/write_recipe.py'
    assert RECIPE['requirements']['run'] == requirements, fix


def test_recipe_has_the_command_and_license_files():
    ((command, function),) = PROJECT['scripts'].items()
    entry = RECIPE['build']['python']['entry_points']
    assert entry == [f'{command} = {function}']
    assert RECIPE['about']['license_file'] == PROJECT['license-files']
    for name in PROJECT['license-files']:
        assert (ROOT / name).is_file()


def test_classifiers_name_the_tested_python_versions():
    jobs = yaml.safe_load((ROOT / '.github/workflows/test.yml').read_text())
    tested = jobs['jobs']['quick']['strategy']['matrix']['python']
    label = 'Programming Language :: Python :: '
    versions = [
        x.removeprefix(label)
        for x in PROJECT['classifiers']
        if re.fullmatch(rf'{label}3\.\d+', x)
    ]
    assert versions == tested
    assert PROJECT['requires-python'] == f'>={tested[0]}'


@pytest.mark.parametrize('address', [None, 'https://example.org/a/b'])
def test_readme_links_are_absolute_if_the_address_is_known(
    address, tmp_path, monkeypatch
):
    project = (ROOT / 'pyproject.toml').read_text('utf-8')
    if address:
        row = f'[project.urls]\nRepository = "{address}/"\n'
        project = project.replace('[project.urls]\n', row)
    (tmp_path / 'pyproject.toml').write_text(project, 'utf-8')
    text = '[a](docs/a.md#b) <img src="docs/a.png"> [c](https://c) [d](#d)'
    (tmp_path / 'README.md').write_text(text, 'utf-8')
    monkeypatch.setattr('setuptools.setup', lambda **settings: None)
    setup = runpy.run_path(str(ROOT / 'setup.py'))
    setup['read_readme'].__globals__['ROOT'] = tmp_path
    expected = text
    if address:
        expected = expected.replace(
            'docs/a.md', f'{address}/blob/main/docs/a.md'
        )
        expected = expected.replace(
            'docs/a.png', f'{address}/raw/main/docs/a.png'
        )
    assert setup['read_readme']() == expected


def test_dist_script_is_valid_shell():
    subprocess.run(['sh', '-n', ROOT / 'tools/dev/dist.sh'], check=True)


def test_smoke_test_has_valid_command_lines():
    smoke = runpy.run_path(str(ROOT / 'tools/dev/smoke_test.py'))
    version, *commands = smoke['COMMANDS']
    assert version == '--version'
    for command in commands:
        name, *options = command.split()
        get_parser(name).parse_args(options)


def test_command_prints_its_version():
    run = run_python('-m', 'mmclca', '--version', cwd=ROOT)
    assert run.stdout.strip() == mmclca.__version__
