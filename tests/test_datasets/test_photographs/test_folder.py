# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import pytest

from mmclca.datasets.photographs import read_photographs

# folders that are trained on, validated and tested on
SPLIT_NAMES = [('train', 'val', 'test'), ('Train', 'valid', 'TEST')]


def make(root, *names):
    """Empty files: what is found does not depend on what is in them."""
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()


def refusal(*args, kind=ValueError, **kwargs):
    with pytest.raises(kind) as error:
        read_photographs(*args, **kwargs)
    text = str(error.value)
    assert '\n' not in text
    return text


def named(photographs, root):
    """Path, class and split of each."""
    assert photographs.source == str(root)
    return [
        (path.removeprefix(f'{root}/'), photographs.classes[label], split)
        for path, label, split in zip(
            photographs.paths,
            photographs.labels,
            photographs.splits,
            strict=True,
        )
    ]


def test_the_first_level_is_the_class(tmp_path):
    make(tmp_path, 'tulip/a.JPG', 'rose/2024/may/b.tiff', 'rose/c d.HEIC')
    found = read_photographs(str(tmp_path))
    assert named(found, tmp_path) == [
        ('rose/2024/may/b.tiff', 'rose', ''),
        ('rose/c d.HEIC', 'rose', ''),
        ('tulip/a.JPG', 'tulip', ''),
    ]
    assert found.classes == ['rose', 'tulip'] and found.groups is None
    assert found.left_out == {} and len(found) == 3
    assert found.counts() == dict(rose=2, tulip=1)


def test_what_is_no_photograph_of_a_class(tmp_path):
    make(tmp_path, 'rose/a.jpg', 'tulip/b.jpg', 'empty/notes.txt')
    make(tmp_path, 'rose/Thumbs.db', 'rose/.c.jpg', '.trash/d.jpg')
    make(tmp_path, '__MACOSX/rose/._a.jpg', '__MACOSX/rose/a.jpg')
    make(tmp_path, 'loose.jpg', 'rose/film.MP4')
    found = read_photographs(tmp_path)
    assert found.classes == ['rose', 'tulip'] and len(found) == 2
    assert found.left_out == {
        f'{tmp_path}/loose.jpg': 'not in a class folder',
        f'{tmp_path}/rose/film.MP4': 'ending in .mp4',
        f'{tmp_path}/empty/notes.txt': 'ending in .txt',
    }


@pytest.mark.parametrize('names', SPLIT_NAMES)
def test_splits_are_respected(tmp_path, names):
    train, val, test = names
    make(tmp_path, f'{train}/rose/a.jpg', f'{train}/tulip/b.jpg')
    make(tmp_path, f'{val}/rose/c.jpg', f'{test}/tulip/deep/d.jpg')
    make(tmp_path, f'{val}/e.jpg', 'originals/rose/a.jpg')
    found = read_photographs(tmp_path)
    assert sorted(named(found, tmp_path)) == sorted(
        [
            (f'{train}/rose/a.jpg', 'rose', 'train'),
            (f'{train}/tulip/b.jpg', 'tulip', 'train'),
            (f'{val}/rose/c.jpg', 'rose', 'val'),
            (f'{test}/tulip/deep/d.jpg', 'tulip', 'test'),
        ]
    )
    assert found.left_out == {
        f'{tmp_path}/{val}/e.jpg': 'not in a class folder',
        f'{tmp_path}/originals/rose/a.jpg': 'not in train, val or test',
    }
    assert [found.splits[i] for i in found.to_train()] == ['train'] * 2


@pytest.mark.parametrize(
    'names',
    [
        ('train/a.jpg', 'bus/b.jpg'),
        ('train/steam/a.jpg', 'bus/b.jpg'),
        ('test/a.jpg', 'control/b.jpg'),
        ('train/a.jpg', 'test/b.jpg'),
    ],
)
def test_a_class_may_have_the_name_of_a_split(tmp_path, names):
    make(tmp_path, *names)
    found = read_photographs(tmp_path)
    assert found.classes == sorted(name.split('/')[0] for name in names)
    assert found.splits == ['', '']


def test_only_a_folder_train(tmp_path):
    make(tmp_path, 'train/rose/a.jpg', 'train/tulip/b.jpg')
    assert read_photographs(tmp_path).classes == ['rose', 'tulip']


def test_no_folder_and_a_file_in_its_place(tmp_path):
    text = refusal(tmp_path / 'photo', kind=FileNotFoundError)
    assert text.startswith(f'folder {tmp_path}/photo does not exist')
    make(tmp_path, 'a.jpg')
    assert 'a.jpg is a file; give the folder' in refusal(tmp_path / 'a.jpg')


def test_no_photographs(tmp_path):
    assert 'has no files' in refusal(tmp_path)
    make(tmp_path, 'rose/a.cr2', 'tulip/b.cr2')
    assert '2 other files' in refusal(tmp_path)


def test_one_class(tmp_path):
    make(tmp_path, 'a.jpg', 'b.jpg')
    text = refusal(tmp_path)
    assert 'has 2 photos but no class folders' in text
    make(tmp_path, 'rose/a.jpg', 'rose/b.jpg')
    text = refusal(tmp_path)
    assert 'two classes' in text
    assert 'in the folder rose; make' in text
    assert 'if its folders are' not in text
    make(tmp_path, 'rose/pale/a.jpg', 'rose/dark/b.jpg')
    assert f'are the classes, use {tmp_path}/rose' in refusal(tmp_path)


def test_groups_by_a_regular_expression(tmp_path):
    make(tmp_path, 'rose/p1_a.jpg', 'rose/p1_b.jpg', 'tulip/deep/p2_c.jpg')
    groups = read_photographs(tmp_path, groups=r'p(\d)_').groups
    assert groups == ['1', '1', '2']
    groups = read_photographs(tmp_path, groups='[^_/]+_').groups
    assert groups == ['p1_', 'p1_', 'p2_']
    groups = read_photographs(tmp_path, groups='^[a-z]+(/deep)?').groups
    assert groups == ['rose', 'rose', '/deep']


def test_groups_that_are_not_found(tmp_path):
    make(tmp_path, 'rose/p1.jpg', 'tulip/2.jpg')
    text = refusal(tmp_path, groups='p[0-9]')
    assert '1 of 2 paths, such as tulip/2.jpg' in text
    text = refusal(tmp_path, groups='p(')
    assert text.startswith("groups='p('")
