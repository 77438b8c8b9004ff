# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import csv
import json

import pytest
import torch
from tiny_model import write_tiny
from tiny_run import CLASSES, ROOT, run_tool, write_images

from mmclca.apis import TokenReductionInferencer
from mmclca.cli.commands import probe as command
from mmclca.datasets.photos import LabeledImages
from mmclca.utils.files import write_rows

TOOLS = ROOT / 'tools'


@pytest.fixture(scope='module')
def folder(tmp_path_factory):
    """Folder with tiny.py, tiny.pth, training images data and test new."""
    folder = tmp_path_factory.mktemp('tiny')
    torch.manual_seed(0)
    write_tiny(folder)
    write_images(folder / 'new', per_class=3, seed=1)
    return folder


@pytest.fixture
def probe(monkeypatch, capsys, folder, tmp_path):
    """Run the tool; return the checkpoint and output."""

    def probe(*arguments, model='tiny.pth'):
        out = tmp_path / 'probe.pth'
        run_tool(
            *(monkeypatch, TOOLS / 'probe.py', folder / model),
            *('--device=cpu', '--out', out, *arguments),
        )
        return out, capsys.readouterr().out

    return probe


def right(path, place):
    """Return the accuracy of a checkpoint on a folder."""
    results = TokenReductionInferencer(path)(place)
    hits = [f'/{one["pred_class"]}/' in one['image'] for one in results]
    return sum(hits) / len(hits)


def test_probe_applies_layers_and_reduction(probe, folder):
    weights = '--weights', folder / 'tiny.pth', '--images', folder / 'data'
    variant = '--method', 'EViT', '--keep-rate', 0.7, '--layers', 0, 2
    path, said = probe(
        *(*weights, *variant, '--out-type', 'cls_average'), model='tiny.py'
    )
    assert '16 images, 4 classes' in said and '96 channels' in said
    model = TokenReductionInferencer(path).model
    assert type(model.backbone.reducer).__name__ == 'EViT'
    assert model.backbone.out_indices == [0, 2]
    assert right(path, folder / 'data') > 0.5


def test_probe_accepts_lists_tables_and_groups(probe, folder, tmp_path):
    files = [f'{name}/{i}.png' for name in CLASSES for i in range(4)][:13]
    listed = tmp_path / 'photos.txt'
    rows = [f'{folder}/data/{f} {9 + i // 4}' for i, f in enumerate(files)]
    listed.write_text('\n'.join(rows))
    path, said = probe('--images', listed, '--classifier', 'logistic')
    assert 'Not tested 12 ' in said
    assert TokenReductionInferencer(path).classes == ['9', '10', '11', '12']
    table = tmp_path / 'photos.csv'
    with table.open('w') as file:
        rows = [(folder / 'data' / f, f.split('/')[0]) for f in files[:12]]
        csv.writer(file).writerows([('file', 'class'), *rows])
    halves = '--groups', r'\d(?=\.png)'
    _, said = probe('--images', table, '--cache', tmp_path / 'kept', *halves)
    assert (
        'Folds      4 ' in said
        and 'Repeats    5' in said
        and any(tmp_path.glob('kept/*/*'))
    )


def test_probe_skips_unreadable_images(probe, folder, tmp_path, capsys):
    write_images(tmp_path / 'data', per_class=1)
    (tmp_path / 'data/oak/no.png').write_bytes(b'')
    weights = '--weights', folder / 'tiny.pth', '--test=test'
    path, said = probe(
        '--images', tmp_path / 'data', *weights, model='tiny.py'
    )
    assert 'Accuracy   unknown' in said
    assert 'Test ' in said and ', 16 images' in said


@pytest.mark.parametrize('final', ['trained', 'probe'])
def test_warning_is_printed_if_backbone_was_trained_on_the_images(
    tmp_path, capsys, final
):
    path = tmp_path / 'ash' / '0.png'
    (tmp_path / 'model.pth').touch()
    (tmp_path / 'fit.json').write_text(json.dumps(dict(final=final)))
    rows = [(str(path), 'ash', True), ('out.png', '', False)]
    rows = [('path', 'class', 'used'), *rows]
    write_rows(tmp_path / 'photographs.csv', rows)
    paths = [str(path), str(tmp_path / 'new.png')]
    images = LabeledImages.from_names(paths, ['ash', 'elm'], '.')
    command.warn_of_known(tmp_path, images)
    told = 'trained on 1 of these 2 images' in capsys.readouterr().err
    assert told is (final == 'trained')
