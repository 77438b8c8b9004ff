# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Warning about photos unlike the training photos."""

import json
import shutil

import numpy as np
import pytest
from PIL import Image
from safetensors.torch import load_file, save_file

from mmclca.apis import TokenReductionInferencer
from mmclca.checkpoints import checksums
from mmclca.fitting import new_photos

DIFFER = 'differ from the training photos (p '


@pytest.fixture
def noise(tmp_path):
    """Write random photos into a folder for each class."""

    def noise(classes, per_class):
        random = np.random.RandomState(0)
        for name in classes:
            (tmp_path / 'noise' / name).mkdir(parents=True)
            for number in range(per_class):
                pixels = random.randint(0, 256, (64, 64, 3), np.uint8)
                file = tmp_path / 'noise' / name / f'{number}.png'
                Image.fromarray(pixels).save(file)
        return tmp_path / 'noise'

    return noise


def test_predict_and_test_warn_if_photos_differ(copy, noise, run, capsys):
    folder = noise(copy.classes, 4)
    run('predict', copy.folder, folder)
    assert DIFFER in capsys.readouterr().err
    run('test', copy.folder, folder)
    assert DIFFER in capsys.readouterr().out


def test_training_photos_and_copies_do_not_count(
    copy, place, noise, run, capsys
):
    photo = noise(copy.classes[:1], 1) / copy.classes[0] / '0.png'
    copies = [photo.with_name(f'copy{i}.png') for i in range(12)]
    for file in copies:
        shutil.copy(photo, file)
    trained = place / 'photographs/train'
    run('predict', copy.folder, trained, *copies)
    printed = capsys.readouterr().err
    assert 'were in training' in printed and DIFFER not in printed


def test_fewer_than_ten_photos_are_not_compared(copy, noise, run, capsys):
    run('predict', copy.folder, noise(copy.classes[:3], 3))
    assert DIFFER not in capsys.readouterr().err


def test_photos_like_the_training_photos_give_no_warning(
    copy, place, run, capsys
):
    run('predict', copy.folder, place / 'new')
    assert 'training' not in capsys.readouterr().err


def test_fine_tuned_models_are_not_compared(copy, noise, run, capsys):
    record = json.loads(copy.folder.joinpath('fit.json').read_text())
    record.pop(checksums.KEY)
    record['final'] = 'trained'
    copy.folder.joinpath('fit.json').write_text(json.dumps(record))
    run('predict', copy.folder, noise(copy.classes, 4))
    assert DIFFER not in capsys.readouterr().err


def test_folder_of_an_earlier_version_needs_a_new_fit(
    copy, noise, run, capsys
):
    file = copy.folder / 'cv_probabilities.safetensors'
    tensors = load_file(file)
    tensors.pop('groups')
    save_file(tensors, file)
    assert not run('predict', copy.folder, noise(copy.classes, 4))
    printed = capsys.readouterr().err
    assert 'not compared' in printed and 'fit again' in printed


def test_only_classes_that_can_occur_are_compared(
    copy, noise, tmp_path, run, capsys, monkeypatch
):
    compared = []
    monkeypatch.setattr(
        new_photos,
        'estimate_shift_p_value',
        lambda *photos: compared.append(photos) or 0.5,
    )
    classes = tmp_path / 'classes.txt'
    classes.write_text('\n'.join(copy.classes[:2]))
    run('predict', copy.folder, noise(copy.classes, 4), '--among', classes)
    ((training, new),) = compared
    assert len(training.scores) == 2 * 4  # two classes
    assert (training.scores < 5).all()  # none is its own neighbor
    assert {*training.predicted.tolist()} <= {0, 1}
    assert {*new.predicted.tolist()} <= {0, 1}


def test_chosen_references_are_spread_over_all_if_there_are_many(
    copy, noise, run, capsys, monkeypatch
):
    inferencer = TokenReductionInferencer(copy.folder)
    everything = new_photos.choose_references(inferencer)
    assert everything.tolist() == [*range(len(everything))]
    monkeypatch.setattr(new_photos, 'MAX_COMPARED', 9)
    some = new_photos.choose_references(inferencer).tolist()
    assert len({*some}) == 9
    assert (some[0], some[-1]) == (0, len(everything) - 1)
    run('predict', copy.folder, noise(copy.classes, 4))
    assert 'not compared' not in capsys.readouterr().err


def test_models_without_similarities_are_not_compared(copy):
    inferencer = TokenReductionInferencer(copy.folder)
    inferencer.threshold = None
    assert new_photos.choose_references(inferencer) is None


def test_largest_similarity_to_references_is_the_known_score(copy, place):
    inferencer = TokenReductionInferencer(copy.folder)
    everything = new_photos.choose_references(inferencer)
    photos = [str(place / 'new')]
    for positions in (everything, everything[[2, 0]]):
        results = [*inferencer.stream(photos, references=positions)]
        similarities = np.stack([x['similarities'] for x in results])
        assert similarities.shape == (len(results), len(positions))
    every = [*inferencer.stream(photos, references=everything)]
    for result, row in zip(every, similarities, strict=True):
        compared = result['similarities']
        assert compared.max() == pytest.approx(result['known_score'])
        assert row == pytest.approx(compared[[2, 0]])
    assert 'similarities' not in next(inferencer.stream(photos))
