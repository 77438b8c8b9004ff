# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import pytest
import torch
from mmengine.config import Config
from mmengine.registry import init_default_scope
from mmengine.runner import Runner
from mmpretrain.datasets import CustomDataset
from mmpretrain.models import AverageClsScoreTTA
from mmpretrain.registry import MODELS
from small_models import RESMLP
from tiny_run import write_images
from torch.utils.data import DataLoader, Dataset

from mmclca.engine.runner import use_class_count


class Leaves(Dataset):
    """Six images with class names, given as a list or a number."""

    def __init__(self, num_classes):
        names = num_classes
        if isinstance(num_classes, int):
            names = tuple(f'c{n}' for n in range(num_classes))
        self.metainfo = {'classes': names} if names else {}

    def __len__(self):
        return 6

    def __getitem__(self, index):
        raise AssertionError('an image was loaded')


def build_runner(tmp_path, train=5, val=5, test=5, hook='ClassCountHook'):
    init_default_scope('mmpretrain')
    model = dict(
        type='ImageClassifier',
        backbone=dict(type='LeNet5', num_classes=-1),
        head=dict(type='LinearClsHead', num_classes=5, in_channels=4),
    )
    parts = {}
    for name, classes in (('val', val), ('test', test)):
        parts[f'{name}_dataloader'] = DataLoader(Leaves(classes))
        parts[f'{name}_cfg'] = {}
        parts[f'{name}_evaluator'] = dict(type='Accuracy')
    return Runner(
        MODELS.build(model),
        str(tmp_path),
        train_dataloader=DataLoader(Leaves(train)),
        train_cfg=dict(by_epoch=True, max_epochs=1),
        **parts,
        optim_wrapper=dict(optimizer=dict(type='SGD', lr=0.1)),
        custom_hooks=[dict(type=f'mmclca.{hook}')],
        default_scope='mmpretrain',
    )


NAMES = tuple(f'c{n}' for n in range(5))
OTHER = (*NAMES[:4], 'zzz')
SWAPPED = ('c1', 'c0', *NAMES[2:])


@pytest.mark.parametrize(
    'loop, datasets, term',
    [
        ('train', dict(train=7, val=7), 'num_classes=7`$'),
        # no advice to use 4 classes, which the training set exceeds
        ('train', dict(val=4), 'only the train set has c4'),
        ('train', dict(val=OTHER), 'zzz'),
        ('train', dict(val=SWAPPED), 'order'),
        ('val', dict(val=6), '6 classes in the val set; set.*=6'),
        ('test', dict(test=6), '6 classes in the test set; set.*=6'),
    ],
)
def test_run_stops_if_classes_differ(tmp_path, loop, datasets, term):
    runner = build_runner(tmp_path, **datasets)
    with pytest.raises(ValueError, match=term):
        getattr(runner, loop)()


def write_checkpoint(runner, file, names, **meta):
    meta['dataset_meta'] = dict(classes=names)
    state = runner.model.state_dict()
    torch.save(dict(meta=meta, state_dict=state), file)
    runner._load_from = str(file)


@pytest.mark.parametrize(
    'names, test, term',
    [
        (OTHER, 5, 'the checkpoint.*zzz'),
        (SWAPPED, 5, 'the checkpoint.*order'),
        (NAMES, 4, 'c4.*classes=FILE'),  # a class folder is missing
    ],
)
def test_test_stops_if_checkpoint_has_other_names(tmp_path, names, test, term):
    runner = build_runner(tmp_path, test=test)
    write_checkpoint(runner, tmp_path / 'a.pth', names)
    with pytest.raises(ValueError, match=term) as error:
        runner.test()
    assert 'num_classes' not in str(error.value)


def test_head_without_num_classes_is_not_compared(tmp_path):
    runner = build_runner(tmp_path, test=7)
    del runner.model.head.num_classes
    with pytest.raises(AssertionError, match='an image was loaded'):
        runner.test()


@pytest.mark.parametrize('hook', ['ClassCountHook', 'CompleteWeightsHook'])
def test_plain_runner_trains_but_does_not_test_a_new_head(tmp_path, hook):
    """MMEngine itself only logs the missing parameters."""
    runner = build_runner(tmp_path, hook=hook)
    file = tmp_path / 'a.pth'
    state = runner.model.state_dict()
    state = {k: x for k, x in state.items() if not k.startswith('head.')}
    torch.save(dict(state_dict=state), file)
    runner._load_from = str(file)
    with pytest.raises(ValueError, match=r'2 parameters.*head\.fc\.weight'):
        runner.test()
    training = build_runner(tmp_path, hook=hook)
    training._load_from = str(file)
    with pytest.raises(AssertionError, match='an image was loaded'):
        training.train()


@pytest.mark.parametrize(
    'names, term', [(OTHER, 'zzz'), (NAMES, 'only weights')]
)
def test_resuming_stops_if_names_differ(tmp_path, names, term):
    runner = build_runner(tmp_path)
    write_checkpoint(runner, tmp_path / 'a.pth', names)
    runner._resume = True
    with pytest.raises(ValueError, match=term):
        runner.train()


def test_training_starts_if_datasets_agree(tmp_path):
    """A checkpoint for fine-tuning may have other classes."""
    runner = build_runner(tmp_path)
    write_checkpoint(runner, tmp_path / 'a.pth', OTHER)
    for ready in (build_runner(tmp_path), runner):
        with pytest.raises(AssertionError, match='an image was loaded'):
            ready.train()


def test_training_starts_if_head_has_no_number_of_classes(tmp_path):
    runner = build_runner(tmp_path)
    del runner.model.head.num_classes
    with pytest.raises(AssertionError, match='an image was loaded'):
        runner.train()


def reordered(runner, tmp_path):
    write_images(tmp_path / 'data', per_class=1, size=8)
    names = ['oak', 'elm', 'beech', 'ash']
    data = CustomDataset(data_root=str(tmp_path / 'data'), classes=names)
    runner._train_dataloader = runner._val_dataloader = DataLoader(data)
    runner.model.head.num_classes = 4


def without_batch(runner, _):
    runner._train_dataloader = DataLoader(Leaves(5), 7, drop_last=True)


def with_topk(runner, _):
    runner._val_evaluator = dict(type='Accuracy', topk=(1, 6))


@pytest.mark.parametrize(
    'change, term',
    [
        (reordered, 'ClassFolders'),
        (with_topk, 'topk'),
        (without_batch, 'drop_last'),
    ],
)
def test_training_stops_if_loader_or_metric_would_fail(tmp_path, change, term):
    runner = build_runner(tmp_path)
    change(runner, tmp_path)
    with pytest.raises(ValueError, match=term):
        runner.train()


def test_test_only_warns_if_class_names_are_missing(tmp_path, caplog):
    runner = build_runner(tmp_path, test=None)
    runner.logger.addHandler(caplog.handler)
    with pytest.raises(AssertionError, match='an image was loaded'):
        runner.test()
    assert 'test_dataloader.dataset.classes=FILE' in caplog.text


def test_test_stops_if_counts_differ_under_tta(tmp_path):
    runner = build_runner(tmp_path, test=7)
    runner.model = AverageClsScoreTTA(module=runner.model)
    with pytest.raises(ValueError, match='is 5, .* 7 classes'):
        runner.test()


LORA = dict(type='mmclca.LoRAModel', targets=[dict(type='.*mix')])


@pytest.mark.parametrize('around', [None, LORA])
def test_training_stops_if_teacher_differs_or_is_broken(tmp_path, around):
    head = dict(type='LinearClsHead', num_classes=5, in_channels=24)
    teacher = dict(type='ImageClassifier', backbone=RESMLP, head=head)
    path, loss = tmp_path / 'teacher.pth', 'mmclca.DeiTDistillation'
    taught = dict(model=teacher, checkpoint=str(path), loss=dict(type=loss))
    student = dict(teacher, type='mmclca.DistilledClassifier', teacher=taught)
    if around:
        student = dict(around, module=student)
    weights = MODELS.build(teacher).state_dict()
    for names, broken, term in ((OTHER, 0, "no 'c4' "), (NAMES, 1, 'NaN')):
        weights['head.fc.bias'][0] = torch.nan if broken else 0
        meta = dict(dataset_meta=dict(classes=names))
        torch.save(dict(state_dict=weights, meta=meta), path)
        runner = build_runner(tmp_path)
        runner.model = MODELS.build(student)
        with pytest.raises(ValueError, match=term):
            runner.train()


def test_class_count_hook_is_added_if_lora_wraps_the_model():
    plain = dict(head=dict(num_classes=5))
    for model in (plain, dict(LORA, module=plain)):
        cfg = Config(dict(model=model))
        use_class_count(cfg)
        assert cfg.custom_hooks[0].type.endswith('ClassCountHook')
