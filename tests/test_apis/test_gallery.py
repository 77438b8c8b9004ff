# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import json
import math

import pytest
import torch
from mmengine.config import Config
from safetensors import safe_open
from safetensors.torch import save_file
from tiny_model import write_tiny
from tiny_run import CLASSES, write_images, write_run

from mmclca.apis import TokenReductionInferencer, neighbours
from mmclca.apis.features import extract_features, extract_logits
from mmclca.apis.gallery import Gallery, read_gallery, write_gallery
from mmclca.apis.neighbours import VOTERS, choose_voters, look_up
from mmclca.datasets.photographs import (
    LabeledImages,
    images_at,
    images_of_split,
)
from mmclca.models.selfsup.grafit import ranking_scores

ANGLES = dict(a0=0, a1=10, b0=40, b1=65, c0=180)  # of features, in degrees


def features_at(*degrees):
    turns = [math.radians(angle) for angle in degrees]
    return torch.tensor([[math.cos(turn), math.sin(turn)] for turn in turns])


def gallery_of(names=None):
    paths = [f'{name}.png' for name in ANGLES]
    names = names or [name[0] for name in ANGLES]
    images = LabeledImages.named(paths, names, 'here')
    return Gallery(images, features_at(*ANGLES.values()), 'model', 'backbone')


def test_others_are_found_and_never_the_image_itself():
    gallery = gallery_of()
    entries, found = look_up(gallery, gallery.images, gallery.features, 2, 1)
    nearest = [e['neighbours'][0]['image'] for e in entries]
    assert nearest == ['a1.png', 'a0.png', 'b1.png', 'b0.png', 'b1.png']
    assert all(
        entry['image'] != near['image']
        for entry in entries
        for near in entry['neighbours']
    )
    assert entries[0]['neighbours'][0]['similarity'] == pytest.approx(
        math.cos(math.radians(10))
    )
    assert found['queries'] == 4 and found['unmatched'] == 1  # c0 is alone
    assert found['mAP'] == found['recall@1'] == found['knn_top1'] == 100
    assert 'average_precision' not in entries[-1]


def test_new_images_with_and_without_classes():
    queries = LabeledImages.named(['x', 'y', 'z'], ['a', 'b', None], 'new')
    entries, found = look_up(gallery_of(), queries, features_at(50, 60, 170))
    assert [len(entry['neighbours']) for entry in entries] == [5] * 3
    # 50 degrees: b0, b1, a1, a0, c0; 60: b1, b0, ...
    assert entries[0]['average_precision'] == pytest.approx(
        (1 / 3 + 2 / 4) / 2
    )
    assert entries[1]['average_precision'] == 1
    assert [entry['knn_class'] for entry in entries] == ['b', 'b', 'c']
    assert found['mAP'] == pytest.approx(100 * (5 / 12 + 1) / 2)
    assert found['recall@1'] == 50 and found['recall@5'] == 100
    assert found['knn_top1'] == 50
    assert found['queries'] == 2 and found['unmatched'] == 0


def test_links_to_an_image_are_the_image(tmp_path):
    (tmp_path / 'a.png').touch()
    (tmp_path / 'b.png').symlink_to('a.png')
    images = LabeledImages.named([str(tmp_path / 'a.png')], ['a'], 'here')
    gallery = Gallery(images, features_at(0), 'model', 'backbone')
    link = [str(tmp_path / 'b.png')]
    assert gallery.similarity(link, features_at(0)).isneginf().all()


def test_no_classes_no_numbers():
    names = [None] * 5
    queries = LabeledImages.named(['x'], ['a'], 'new')
    with pytest.warns(UserWarning, match='no other image'):
        look_up(gallery_of(names), queries, features_at(0))
    queries = LabeledImages.named(['x'], [None], 'new')
    entries, found = look_up(gallery_of(names), queries, features_at(0))
    assert found == {} and 'knn_class' not in entries[0]
    assert entries[0]['neighbours'][0]['image'] == 'a0.png'


def test_images_without_a_class_do_not_vote():
    gallery = gallery_of(['a', None, 'b', 'b', 'c'])
    queries = LabeledImages.named(['x', 'y'], ['a', 'b'], 'new')
    entries, found = look_up(gallery, queries, features_at(9, 60), 1, 1)
    assert entries[0]['neighbours'][0]['image'] == 'a1.png'
    assert [entry['knn_class'] for entry in entries] == ['a', 'b']
    assert found['knn_top1'] == 100 and found['recall@1'] == 50


def test_classes_that_are_not_in_the_gallery():
    queries = LabeledImages.named(['x', 'y'], ['oak', 'elm'], 'new')
    with pytest.warns(UserWarning, match=r'\(elm, oak, ...\)'):
        entries, found = look_up(gallery_of(), queries, features_at(0, 1))
    assert found == dict(queries=0, unmatched=2)
    assert all(entry['neighbours'] for entry in entries)


def test_written_and_read(tmp_path):
    path = tmp_path / 'new/g.safetensors'
    gallery = gallery_of(['a', 'a', 'b', None, 'ö'])
    write_gallery(gallery, path)
    again = read_gallery(path, 'model', 'backbone')
    assert torch.equal(again.features, gallery.features)
    assert again.images.names == gallery.images.names
    with safe_open(path, 'pt') as file:
        facts = file.metadata()
    paths = ['http://a/b.jpg', *gallery.images.paths[1:]]
    facts['paths'] = json.dumps(paths)
    save_file(dict(features=gallery.features), path, facts)
    with pytest.raises(ValueError, match='http://a/b.jpg'):
        read_gallery(path, 'model', 'backbone')
    broken = gallery.features.index_fill(0, torch.tensor(2), torch.nan)
    facts['paths'] = json.dumps(gallery.images.paths)
    wrong = gallery.features[:4], broken, gallery.features.int()
    for features in (*wrong, gallery.features[:, :0]):
        save_file(dict(features=features), path, facts)
        with pytest.raises(ValueError, match='is not a gallery'):
            read_gallery(path, 'model', 'backbone')
    path.write_bytes(b'no such thing')
    with pytest.raises(ValueError, match='is not a gallery'):
        read_gallery(path, 'model', 'backbone')
    with pytest.raises(FileNotFoundError, match='does not exist'):
        read_gallery(tmp_path / 'gone', 'model', 'backbone')


@pytest.fixture(scope='module')
def inferencer(tmp_path_factory):
    torch.manual_seed(0)
    folder = tmp_path_factory.mktemp('tiny')
    write_tiny(folder)
    return TokenReductionInferencer(folder / 'tiny.pth', device='cpu')


def test_features_of_images(inferencer, tmp_path):
    write_images(tmp_path / 'data', per_class=1)
    (tmp_path / 'data/oak/bad.png').write_text('no image')
    images = images_at(tmp_path / 'data')
    features, unread = extract_features(inferencer, images.paths, batch_size=2)
    logits, _ = extract_logits(inferencer, images.paths)
    last, _ = extract_features(inferencer, images.paths, 'backbone')
    assert features.shape == (4, 24) and torch.equal(features, last)
    expected = inferencer.model.head.fc(features)
    assert torch.allclose(logits, expected, atol=1e-5)
    (position,) = unread
    assert images.paths[position].endswith('bad.png')
    with pytest.raises(ValueError, match='none of 1 images can be read'):
        extract_features(inferencer, [images.paths[position]])
    with pytest.raises(ValueError, match="stage: no 'neck'; choose"):
        extract_features(inferencer, images.paths, 'neck')


def test_weights_that_give_nan(inferencer, tmp_path):
    write_images(tmp_path / 'data', per_class=1)
    bias = inferencer.model.head.fc.bias
    old = bias.data.clone()
    bias.data.fill_(torch.nan)
    try:
        with pytest.raises(ValueError, match='infinite for 4 of 4'):
            extract_logits(inferencer, images_at(tmp_path / 'data').paths)
    finally:
        bias.data.copy_(old)


def test_folder_list_and_split(inferencer, tmp_path):
    write_images(tmp_path / 'data', per_class=2)
    found = images_at(tmp_path / 'data')
    assert found.names == [name for name in CLASSES for _ in range(2)]
    flat = images_at(tmp_path / 'data/oak')
    assert flat.names == [None, None]
    names = tmp_path / 'data/some.txt'
    names.write_text('oak/0.png 3\n\nan elm/1 1.png\n')
    some = images_at(names)
    assert some.names == ['3', None]
    assert some.paths[1] == str(tmp_path / 'data/an elm/1 1.png')
    (tmp_path / 'data/classes.txt').write_text('\n'.join(CLASSES))
    assert images_at(names).names == ['oak', None]
    config = Config.fromfile(write_run(tmp_path / 'run'))
    split = images_of_split(config, 'train')
    assert set(split.names) == set(CLASSES) and len(split.paths) == 16


def test_wrong_places(inferencer, tmp_path):
    (tmp_path / 'classes.txt').write_text('ash\nelm\n')
    names = tmp_path / 'some.txt'
    names.write_text('a.png 2\n')
    with pytest.raises(ValueError, match='from 0 to 1'):
        images_at(names)
    names.write_text('\n')
    with pytest.raises(ValueError, match='some.txt .*no image'):
        images_at(names)
    with pytest.raises(FileNotFoundError, match='does not exist'):
        images_at(tmp_path / 'gone')
    (tmp_path / 'a.png').touch()
    with pytest.raises(ValueError, match='folder or a .txt list'):
        images_at(tmp_path / 'a.png')
    config = inferencer.model._config.copy()
    (tmp_path / 'none.txt').write_text('')
    config.test_dataloader.dataset.update(
        ann_file=str(tmp_path / 'none.txt'), classes=CLASSES
    )
    with pytest.raises(ValueError, match='none.txt .*no images'):
        images_of_split(config, 'test')
    config.val_dataloader = None
    with pytest.raises(ValueError, match='val_dataloader'):
        images_of_split(config, 'val')


def images_of(entry):
    return [near['image'] for near in entry['neighbours']]


LEVELS = dict(a='x', b='y', c='x')


@pytest.mark.parametrize('ranking', ['cosine', 'conditional', 'oracle'])
def test_rankings_some_queries_at_a_time(monkeypatch, ranking):
    queries = LabeledImages.named(['p', 'q', 'r'], ['a', 'b', 'c'], 'new')
    features = features_at(50, 60, 170)
    how = gallery_of(), queries, features, 5, 2, ranking, LEVELS
    entries, found = look_up(*how)
    gallery = how[0]
    theirs = torch.tensor([0, 0, 1, 1, 0])
    scores = ranking_scores(
        features, gallery.features, theirs, ranking, 0.05, theirs[[0, 2, 4]]
    )
    for entry, row in zip(entries, scores, strict=True):
        order = [gallery.images.paths[i] for i in row.argsort(descending=True)]
        assert images_of(entry) == order
    if ranking == 'oracle':
        assert found['mAP'] == 100
    monkeypatch.setattr(neighbours, 'MAX_ENTRIES', 1)
    some, again = look_up(*how)
    assert again == pytest.approx(found)
    for one, other in zip(some, entries, strict=True):
        assert images_of(one) == images_of(other)


def test_folds_choose_how_many_vote():
    torch.manual_seed(0)
    labels = [i % 2 for i in range(80)]
    features = features_at(*(60.0 * torch.tensor(labels)))
    features += 0.6 * torch.randn(80, 2)
    names = [f'class {label}' for label in labels]
    images = LabeledImages.named([f'{i}' for i in range(80)], names, 'here')
    gallery = Gallery(images, features, 'model', 'backbone')
    k, _ = choose_voters(images, features)
    assert choose_voters(images, features) == (k, 0.05)
    assert k in VOTERS
    entries, _ = look_up(gallery, images, features, 1, 0)
    by_hand, _ = look_up(gallery, images, features, 1, k)
    pairs = zip(entries, by_hand, strict=True)
    same = [one['knn_class'] == other['knn_class'] for one, other in pairs]
    assert sum(same) >= 70  # the temperature is another


def test_a_ranking_needs_a_level_for_each_class():
    gallery = gallery_of()
    how = gallery, gallery.images, gallery.features, 1, 1, 'conditional'
    with pytest.raises(ValueError, match='no row for 1 classes, such as c'):
        look_up(*how, dict(a='x', b='y'))
    queries = LabeledImages.named(['x'], [None], 'new')
    how = gallery, queries, features_at(0), 1, 1, 'oracle', LEVELS
    with pytest.raises(ValueError, match='oracle .* classes, but 1 images'):
        look_up(*how)
