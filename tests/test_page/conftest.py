# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Fixtures for tabs with uploaded folders."""

from dataclasses import replace
from types import SimpleNamespace

import pytest
import report_folder
import torch
from tiny_model import write_tiny
from tiny_run import CLASSES

from mmclca.fitting.record import FitRecord


@pytest.fixture(scope='package')
def recorded_model(tmp_path_factory):
    """Small model with a record of its classes, but no training photos."""
    from mmclca.page import open_model  # needs gradio

    folder = tmp_path_factory.mktemp('model')
    torch.manual_seed(0)
    write_tiny(folder)
    facts = report_folder.facts() | dict(call=dict(photos=None))
    record = FitRecord.from_json(facts)
    record = replace(record, photos=replace(record.photos, classes=CLASSES))
    files = SimpleNamespace(
        read_complete=lambda: record,
        read_used_digests=frozenset,
        read_used_photos=list,
    )
    return replace(open_model(folder / 'tiny.pth'), files=files)


@pytest.fixture
def empty_uploads(tmp_path):
    (tmp_path / 'uploads').mkdir()
    return tmp_path / 'uploads'


@pytest.fixture
def problems(monkeypatch):
    """Warnings on the page."""
    from mmclca.page import handlers  # needs gradio

    shown = []
    warn = lambda message, **_: shown.append(message)  # noqa: E731
    monkeypatch.setattr(handlers.gr, 'Warning', warn)
    return shown
