# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Workflows run targets of the Makefile, or tests that exist."""

import re

import pytest
import yaml
from setuptools.config.pyprojecttoml import load_file
from tiny_run import ROOT

PROJECT = load_file(ROOT / 'pyproject.toml')['project']
FILES = sorted(ROOT.glob('.github/workflows/*.yml'))
TARGETS = re.findall(r'(?m)^([a-z-]+):', (ROOT / 'Makefile').read_text())


@pytest.mark.parametrize('file', FILES, ids=lambda file: file.stem)
def test_workflow_runs_make_targets(file):
    jobs = yaml.safe_load(file.read_text())['jobs']
    jobs.pop('systems', None)  # without make
    steps = [step for job in jobs.values() for step in job['steps']]
    commands = [step['run'] for step in steps if 'run' in step]
    assert len(commands) == len(jobs) or file.stem == 'codeql'
    for command in commands:
        target = re.match(r'make ([a-z-]+)', command)[1].rstrip('-')
        assert any(name.startswith(target) for name in TARGETS), command


def test_tests_run_on_windows_and_macos():
    jobs = yaml.safe_load((ROOT / '.github/workflows/test.yml').read_text())
    job = jobs['jobs']['systems']
    systems = ' '.join(job['strategy']['matrix']['system'])
    assert 'windows' in systems and 'macos' in systems
    install, test = [step['run'] for step in job['steps'] if 'run' in step]
    (extras,) = re.findall(r'-e \.\[(\S+)\]', install)
    assert {*extras.split(',')} <= PROJECT['optional-dependencies'].keys()
    folders = re.findall(r'tests/\S+', test)
    assert 'tests/test_package/test_platforms.py' in folders
    assert all((ROOT / folder).exists() for folder in folders)


def test_quick_tests_run_on_each_supported_version():
    jobs = yaml.safe_load((ROOT / '.github/workflows/test.yml').read_text())
    versions = jobs['jobs']['quick']['strategy']['matrix']['python']
    assert versions == [f'3.{minor}' for minor in range(10, 15)]


@pytest.mark.parametrize('file', FILES, ids=lambda file: file.stem)
def test_workflow_can_only_report_vulnerabilities(file):
    workflow = yaml.safe_load(file.read_text())
    assert workflow['permissions'] == {'contents': 'read'}
    for job in workflow['jobs'].values():
        more = {'contents': 'read', 'security-events': 'write'}
        assert job.get('permissions', more) == more


def test_dependabot_updates_packages_and_actions():
    found = yaml.safe_load((ROOT / '.github/dependabot.yml').read_text())
    kinds = {x['package-ecosystem'] for x in found['updates']}
    assert kinds == {'pip', 'github-actions'}
