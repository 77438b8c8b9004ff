# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Damaged files of a model folder are found, never loaded in silence."""

import json
from base64 import b64encode
from hashlib import sha256

import pytest
import torch
from hostile import few_and_many
from safetensors.torch import save_file

from mmclca.checkpoints.model_folder import WEIGHTS
from mmclca.checkpoints.opening import open_checkpoint
from mmclca.cli.commands.verify import damage, find
from mmclca.fitting import adding


def flip_bits(random, path):
    """Flip one to three bits of a file."""
    content = bytearray(path.read_bytes())
    for _ in range(random.randint(1, 3)):
        content[random.randrange(len(content))] ^= 1 << random.randrange(8)
    path.write_bytes(content)


def same(one, other):
    if isinstance(one, torch.Tensor):
        return one.dtype == other.dtype and torch.equal(one, other)
    if isinstance(one, dict):
        equal = (same(one[x], other[x]) for x in one if x in other)
        return one.keys() == other.keys() and all(equal)
    return one == other


def content_of(path):
    """Return what programs read from a file."""
    if path.suffix in WEIGHTS:
        return open_checkpoint(str(path))
    if path.name == 'threshold.json':
        facts = json.loads(path.read_bytes())
        return [facts[x] for x in ('score', 'threshold', 'model')]
    return path.read_bytes()


@few_and_many(10, 1500)
def test_flipped_bits_are_found_or_change_nothing(attack, tries, copy):
    files, record = find(copy.folder), copy.folder / 'fit.json'
    table = copy.folder / 'photographs.csv'
    assert {x.suffix for x in files} == {'.json', '.pth', '.safetensors'}

    def attempt(random):
        path = random.choice([*files, table])
        whole, before = path.read_bytes(), content_of(path)
        flip_bits(random, path)
        try:
            found = damage(record if path == table else path)
            assert found or same(before, content_of(path)), path
        except KeyError:  # the threshold is refused without a key
            pass
        finally:
            path.write_bytes(whole)

    attack.run('flipped bits in a model folder', tries, attempt)


def test_verify_names_damaged_tensor_and_missing_file(
    copy, place, run, capsys, tmp_path
):
    path = copy.folder / 'model.pth'
    name = 'backbone.layers.1.attn.qkv.weight'
    tensor = open_checkpoint(str(path))['state_dict'][name]
    content = path.read_bytes()
    assert run('verify', copy.folder) == 0
    begin, numbers, end = content.partition(tensor.numpy().tobytes())
    path.write_bytes(begin + b'?' + numbers[1:] + end)
    for words in (['verify', path], ['verify', copy.folder]):
        capsys.readouterr()
        assert run(*words) == 1
        found = capsys.readouterr().out
        assert str(path) in found and name in found
    assert run('predict', copy.folder, place / 'larch') == 2
    error = capsys.readouterr().err
    assert name in error and error.count('\n') == 1
    path.unlink()
    assert run('verify', copy.folder) == 1
    assert run('verify', tmp_path / 'none') == 2


@pytest.mark.parametrize(
    'name', ['threshold.json', 'probe.pth', 'fit.json', 'photographs.csv']
)
def test_verify_names_missing_file_of_a_model(copy, run, capsys, name):
    (copy.folder / name).unlink()
    assert run('verify', copy.folder) == 1
    lines = capsys.readouterr().out.splitlines()
    (line,) = (x for x in lines if x.startswith('Missing'))
    assert str(copy.folder / name) in line


@pytest.mark.parametrize('name', ['model.pth', 'probe.pth'])
@pytest.mark.parametrize('is_cut', [True, False])
def test_add_class_refuses_damaged_weights_before_any_work(
    copy, place, run, capsys, monkeypatch, name, is_cut
):
    path = copy.folder / name
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content[: len(content) // 2] if is_cut else content)
    before = {x: x.read_bytes() for x in copy.folder.iterdir() if x.is_file()}
    monkeypatch.setattr(adding, 'check_photos', None)  # not reached
    assert run('add-class', copy.folder, place / 'larch') == 2
    assert f'{path} (' in capsys.readouterr().err
    assert before == {
        x: x.read_bytes() for x in copy.folder.iterdir() if x.is_file()
    }


def test_predict_names_the_damaged_file_of_a_folder(copy, place, run, capsys):
    (copy.folder / 'model.pth').write_bytes(b'PK')
    assert run('predict', copy.folder, place / 'larch') == 2
    assert f'{copy.folder / "model.pth"} (2 bytes)' in capsys.readouterr().err


def test_predict_warns_if_threshold_is_missing(copy, place, run, capsys):
    (copy.folder / 'threshold.json').unlink()
    assert run('predict', copy.folder, place / 'larch') == 0
    warning = capsys.readouterr().err
    assert 'Warning' in warning and 'threshold.json' in warning


def test_verify_counts_files_without_checksums(run, capsys, tmp_path):
    file = tmp_path / 'a.safetensors'
    save_file(dict(x=torch.ones(3)), file)
    torch.save(dict(x=torch.ones(3)), tmp_path / 'b.pth')
    torch.save(
        dict(x=torch.ones(3)),
        tmp_path / 'c.pth',
        _use_new_zipfile_serialization=False,
    )
    assert run('verify', tmp_path) == 0
    out = capsys.readouterr().out
    assert 'no checksums: 2 files' in out and 'Checked    1 file,' in out


def test_verify_compares_web_app_with_its_digests(run, capsys, tmp_path):
    files = {x: f'<{x}>'.encode() for x in ('index.html', 'app.js')}
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    digests = {
        './' if name == 'index.html' else name: (
            f'sha256-{b64encode(sha256(content).digest()).decode()}'
        )
        for name, content in files.items()
    }
    (tmp_path / 'sw.js').write_text(f'const FILES = {json.dumps(digests)};')
    assert run('verify', tmp_path) == 0
    (tmp_path / 'app.js').write_bytes(b'changed')
    assert run('verify', tmp_path) == 1
    assert 'app.js' in capsys.readouterr().out
    (tmp_path / 'app.js').unlink()
    assert run('verify', tmp_path) == 1
    assert 'Missing' in capsys.readouterr().out


@pytest.mark.parametrize('name', ['sw.js', 'last_checkpoint', 'fit.json'])
def test_verify_names_a_damaged_list_of_files(run, capsys, tmp_path, name):
    (tmp_path / name).write_bytes(b'\xff{')
    (tmp_path / 'model.pth').touch()
    assert run('verify', tmp_path) == 1
    assert f'Damaged    {tmp_path / name}' in capsys.readouterr().out


def test_verify_names_a_link_in_a_model_folder(copy, run, capsys):
    (copy.folder / 'probe.pth').unlink()
    (copy.folder / 'probe.pth').symlink_to('model.pth')
    assert run('verify', copy.folder) == 1
    assert 'link' in capsys.readouterr().out


def test_verify_names_missing_checkpoint_of_a_run(run, capsys, tmp_path):
    (tmp_path / 'last_checkpoint').write_text('/moved/epoch_2.pth')
    assert run('verify', tmp_path) == 1
    assert str(tmp_path / 'epoch_2.pth') in capsys.readouterr().out
    torch.save(dict(x=torch.ones(3)), tmp_path / 'epoch_2.pth')
    assert run('verify', tmp_path) == 0
