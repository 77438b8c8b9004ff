# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import math

import pytest
import torch
from mmengine.config import Config
from safetensors import safe_open
from safetensors.torch import save_file
from tiny_run import CLASSES, write_images, write_run

from mmclca.apis import neighbors
from mmclca.apis.features import extract_features, extract_logits
from mmclca.apis.gallery import Gallery, read_gallery, write_gallery
from mmclca.apis.neighbors import VOTERS, Search, choose_voters, look_up
from mmclca.datasets.photos import LabeledImages, list_images
from mmclca.datasets.split_images import list_split_images
from mmclca.models.selfsup.grafit import ranking_scores

ANGLES = dict(a0=0, a1=10, b0=40, b1=65, c0=180)  # features, in degrees
LEVELS = dict(a='x', b='y', c='x')


def features_at(*degrees):
    turns = [math.radians(angle) for angle in degrees]
    return torch.tensor([[math.cos(turn), math.sin(turn)] for turn in turns])


def gallery_of(names='aabbc'):
    paths = [f'{name}.png' for name in ANGLES]
    images = LabeledImages.from_names(paths, list(names), 'here')
    return Gallery(images, features_at(*ANGLES.values()), 'model', 'backbone')


def queries_of(*names):
    paths = [f'new{i}.png' for i in range(len(names))]
    return LabeledImages.from_names(paths, list(names), 'new')


def images_of(entry):
    return [near['image'] for near in entry['neighbors']]


def test_look_up_finds_other_images_if_queries_are_the_gallery():
    gallery = gallery_of()
    entries, found = look_up(
        gallery, gallery.images, gallery.features, Search(4, 1)
    )
    assert [images_of(entry)[0] for entry in entries] == [
        *('a1.png', 'a0.png', 'b1.png', 'b0.png', 'b1.png')
    ]
    assert all(entry['image'] not in images_of(entry) for entry in entries)
    assert entries[0]['neighbors'][0]['similarity'] == pytest.approx(
        math.cos(math.radians(10))
    )
    assert found['queries'] == 4 and found['unmatched'] == 1  # only one c
    assert found['mAP'] == found['recall@1'] == found['knn_top1'] == 100
    assert 'average_precision' not in entries[-1]


def test_look_up_measures_only_queries_with_a_class():
    queries = queries_of('a', 'b', None)
    entries, found = look_up(gallery_of(), queries, features_at(50, 60, 170))
    assert [len(images_of(entry)) for entry in entries] == [5] * 3
    # 50 degrees: b0, b1, a1, a0, c0; 60 degrees: b1, b0, ...
    first = (1 / 3 + 2 / 4) / 2
    assert entries[0]['average_precision'] == pytest.approx(first)
    assert entries[1]['average_precision'] == 1
    assert [entry['knn_class'] for entry in entries] == ['b', 'b', 'c']
    assert found['mAP'] == pytest.approx(100 * (first + 1) / 2)
    assert found['recall@1'] == found['knn_top1'] == 50
    assert found['recall@5'] == 100
    assert found['queries'] == 2 and found['unmatched'] == 0


def test_similarity_excludes_symbolic_links_to_the_query(tmp_path):
    (tmp_path / 'a.png').touch()
    (tmp_path / 'b.png').symlink_to('a.png')
    images = LabeledImages.from_names([str(tmp_path / 'a.png')], ['a'], 'here')
    gallery = Gallery(images, features_at(0), 'model', 'backbone')
    link = [str(tmp_path / 'b.png')]
    assert gallery.similarity(link, features_at(0)).isneginf().all()


def test_look_up_returns_no_metrics_without_classes():
    entries, found = look_up(
        gallery_of([None] * 5), queries_of(None), features_at(0)
    )
    assert found == {} and 'knn_class' not in entries[0]
    assert images_of(entries[0])[0] == 'a0.png'


def test_gallery_images_do_not_vote_without_a_class():
    gallery = gallery_of(['a', None, 'b', 'b', 'c'])
    queries = queries_of('a', 'b')
    entries, found = look_up(
        gallery, queries, features_at(9, 60), Search(1, 1)
    )
    assert images_of(entries[0]) == ['a1.png']
    assert [entry['knn_class'] for entry in entries] == ['a', 'b']
    assert found['knn_top1'] == 100 and found['recall@1'] == 50


def test_look_up_warns_if_the_gallery_lacks_the_query_classes():
    queries = queries_of('oak', 'elm')
    with pytest.warns(UserWarning, match='elm, oak'):
        entries, found = look_up(gallery_of(), queries, features_at(0, 1))
    assert found == dict(queries=0, unmatched=2)
    assert all(entry['neighbors'] for entry in entries)


@pytest.mark.parametrize('ranking', ['cosine', 'conditional', 'oracle'])
def test_look_up_ranks_by_scores_in_any_chunk_size(monkeypatch, ranking):
    gallery, features = gallery_of(), features_at(50, 60, 170)
    queries = queries_of('a', 'b', 'c')
    how = gallery, queries, features, Search(5, 2, ranking, LEVELS)
    entries, found = look_up(*how)
    coarse = torch.tensor([0, 0, 1, 1, 0])
    given = gallery.features, coarse, ranking, 0.05, coarse[[0, 2, 4]]
    scores = ranking_scores(features, *given)
    for entry, row in zip(entries, scores, strict=True):
        order = [gallery.images.paths[i] for i in row.argsort(descending=True)]
        assert images_of(entry) == order
    if ranking == 'oracle':
        assert found['mAP'] == 100
    monkeypatch.setattr(neighbors, 'MAX_ENTRIES', 1)
    some, again = look_up(*how)
    assert again == pytest.approx(found)
    assert [*map(images_of, some)] == [*map(images_of, entries)]


def test_choose_voters_selects_the_same_number_each_time():
    torch.manual_seed(0)
    labels = [i % 2 for i in range(80)]
    features = features_at(*(60.0 * torch.tensor(labels)))
    features += 0.6 * torch.randn(80, 2)
    names = [f'class {label}' for label in labels]
    images = LabeledImages.from_names(
        [f'{i}' for i in range(80)], names, 'here'
    )
    gallery = Gallery(images, features, 'model', 'backbone')
    voting = choose_voters(images, features)
    assert voting.number in VOTERS and voting.temperature == 0.05
    assert choose_voters(images, features) == voting
    entries, _ = look_up(gallery, images, features, Search(1, 0))
    by_hand, _ = look_up(gallery, images, features, Search(1, voting.number))
    pairs = zip(entries, by_hand, strict=True)
    same = [one['knn_class'] == other['knn_class'] for one, other in pairs]
    assert sum(same) >= 70  # the temperature differs


@pytest.mark.parametrize(
    'names, ranking, levels, message',
    [
        ('a', 'conditional', dict(a='x', b='y'), 'such as c'),
        ([None], 'oracle', LEVELS, 'oracle .* 1 images'),
    ],
)
def test_look_up_refuses_a_ranking_without_coarse_classes(
    names, ranking, levels, message
):
    given = queries_of(*names), features_at(0), Search(1, 1, ranking, levels)
    with pytest.raises(ValueError, match=message):
        look_up(gallery_of(), *given)


def test_read_gallery_returns_the_written_gallery_only(tmp_path):
    path = tmp_path / 'new/g.safetensors'
    with pytest.raises(FileNotFoundError):
        read_gallery(path, 'model', 'backbone')
    gallery = gallery_of(['a', 'a', 'b', None, 'ö'])
    write_gallery(gallery, path)
    again = read_gallery(path, 'model', 'backbone')
    assert torch.equal(again.features, gallery.features)
    assert again.images.names == gallery.images.names
    for other in (('other', 'backbone'), ('model', 'pre_logits')):
        with pytest.raises(ValueError, match='another model'):
            read_gallery(path, *other)
    path.write_bytes(b'no such thing')
    with pytest.raises(ValueError, match='not a gallery'):
        read_gallery(path, 'model', 'backbone')


@pytest.mark.parametrize(
    'features, paths',
    [
        (lambda x: x[:4], {}),
        (lambda x: x.index_fill(0, torch.tensor(2), torch.nan), {}),
        (torch.Tensor.int, {}),
        (lambda x: x[:, :0], {}),
        (lambda x: x, dict(paths='["http://a/b.jpg", "b", "c", "d", "e"]')),
        (lambda x: x, dict(paths='[0, "b", "c", "d", "e"]')),
        (lambda x: x, dict(names='{')),
    ],
)
def test_read_gallery_refuses_a_damaged_file(tmp_path, features, paths):
    path, gallery = tmp_path / 'g.safetensors', gallery_of()
    write_gallery(gallery, path)
    with safe_open(path, 'pt') as file:
        facts = file.metadata() | paths
    features = features(gallery.features).contiguous()
    save_file(dict(features=features), path, facts)
    with pytest.raises(ValueError, match='not a gallery'):
        read_gallery(path, 'model', 'backbone')


def test_extract_features_skips_unreadable_images(
    inferencer, tmp_path, monkeypatch
):
    write_images(tmp_path / 'data', per_class=1)
    (tmp_path / 'data/oak/bad.png').write_text('no image')
    images = list_images(tmp_path / 'data')
    features, unread = extract_features(inferencer, images.paths, batch_size=2)
    logits, _ = extract_logits(inferencer, images.paths)
    last, _ = extract_features(inferencer, images.paths, 'backbone')
    assert features.shape == (4, 24) and torch.equal(features, last)
    expected = inferencer.model.head.fc(features)
    assert torch.allclose(logits, expected, atol=1e-5)
    (position,) = unread
    assert images.paths[position].endswith('bad.png')
    with pytest.raises(ValueError, match='none of 1'):
        extract_features(inferencer, [images.paths[position]])
    with pytest.raises(ValueError, match='neck'):
        extract_features(inferencer, images.paths, 'neck')
    bias = inferencer.model.head.fc.bias
    monkeypatch.setattr(bias, 'data', torch.full((4,), torch.nan))
    with pytest.raises(ValueError, match='4 of 4'):
        extract_logits(inferencer, images.paths)


def test_images_at_reads_folders_lists_and_splits(tmp_path):
    write_images(tmp_path / 'data', per_class=2)
    found = list_images(tmp_path / 'data')
    assert found.names == [name for name in CLASSES for _ in range(2)]
    assert list_images(tmp_path / 'data/oak').names == [None, None]
    names = tmp_path / 'data/some.txt'
    names.write_text('oak/0.png 3\n\nan elm/1 1.png\n')
    some = list_images(names)
    assert some.names == ['3', None]
    assert some.paths[1] == str(tmp_path / 'data/an elm/1 1.png')
    (tmp_path / 'data/classes.txt').write_text('\n'.join(CLASSES))
    assert list_images(names).names == ['oak', None]
    config = Config.fromfile(write_run(tmp_path / 'run'))
    split = list_split_images(config, 'train')
    assert set(split.names) == set(CLASSES) and len(split.paths) == 16


def test_images_at_refuses_other_places(inferencer, tmp_path):
    with pytest.raises(FileNotFoundError):
        list_images(tmp_path / 'gone')
    (tmp_path / 'classes.txt').write_text('ash\nelm\n')
    texts = [('a.png', '', 'folder'), ('some.txt', '\n', 'some.txt')]
    texts += [('some.txt', 'a.png 2\n', 'from 0 to 1')]
    for name, text, term in texts:
        (tmp_path / name).write_text(text)
        with pytest.raises(ValueError, match=term):
            list_images(tmp_path / name)
    config = inferencer.model._config.copy()
    (tmp_path / 'none.txt').write_text('')
    config.test_dataloader.dataset.update(
        ann_file=str(tmp_path / 'none.txt'), classes=CLASSES
    )
    with pytest.raises(ValueError, match='none.txt'):
        list_split_images(config, 'test')
    config.val_dataloader = None
    with pytest.raises(ValueError, match='val_dataloader'):
        list_split_images(config, 'val')
