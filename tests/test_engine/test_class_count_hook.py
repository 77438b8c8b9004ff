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

HEADS = {
    'LinearClsHead': dict(in_channels=4),
    'VisionTransformerClsHead': dict(in_channels=4),
    'MultiLabelLinearClsHead': dict(in_channels=4),
    'StackedLinearClsHead': dict(in_channels=4, mid_channels=[4]),
}


class Leaves(Dataset):
    """Six images of as many classes as named, or of these names."""

    def __init__(self, num_classes):
        names = num_classes
        if isinstance(num_classes, int):
            names = tuple(f'c{n}' for n in range(num_classes))
        self.metainfo = {'classes': names} if names else {}

    def __len__(self):
        return 6

    def __getitem__(self, index):
        raise AssertionError('an image was loaded')


def build_runner(tmp_path, head='LinearClsHead', train=5, val=5, test=5):
    init_default_scope('mmpretrain')
    model = dict(
        type='ImageClassifier',
        backbone=dict(type='LeNet5', num_classes=-1),
        head=dict(type=head, num_classes=5, **HEADS[head]),
    )
    return Runner(
        MODELS.build(model),
        str(tmp_path),
        train_dataloader=DataLoader(Leaves(train)),
        val_dataloader=DataLoader(Leaves(val)),
        test_dataloader=DataLoader(Leaves(test)),
        train_cfg=dict(by_epoch=True, max_epochs=1),
        val_cfg={},
        test_cfg={},
        val_evaluator=dict(type='Accuracy'),
        test_evaluator=dict(type='Accuracy'),
        optim_wrapper=dict(optimizer=dict(type='SGD', lr=0.1)),
        custom_hooks=[dict(type='mmclca.ClassCountHook')],
        default_scope='mmpretrain',
    )


@pytest.mark.parametrize('head', HEADS)
def test_training_stops_before_the_first_image(tmp_path, head):
    runner = build_runner(tmp_path, head, train=7, val=7)
    with pytest.raises(ValueError, match='5, .* 7 .*num_classes=7`$'):
        runner.train()


def test_validation_set_is_checked_before_training(tmp_path):
    runner = build_runner(tmp_path, val=4)
    # 4 classes would be wrong for the training set
    with pytest.raises(ValueError, match='only the train set has c4'):
        runner.train()


OTHERS = ('c0', 'c1', 'c2', 'c3', 'zzz')
TURNED = ('c1', 'c0', 'c2', 'c3', 'c4')


@pytest.mark.parametrize(
    ('names', 'term'), [(OTHERS, 'zzz'), (TURNED, 'order')]
)
def test_training_stops_if_names_differ(tmp_path, names, term):
    runner = build_runner(tmp_path, val=names)
    with pytest.raises(ValueError, match=term):
        runner.train()


def write_checkpoint(runner, file, names, **meta):
    meta['dataset_meta'] = dict(classes=names)
    state = runner.model.state_dict()
    torch.save(dict(meta=meta, state_dict=state), file)
    runner._load_from = str(file)


@pytest.mark.parametrize(
    ('names', 'term'), [(OTHERS, 'zzz'), (TURNED, 'order')]
)
def test_test_stops_if_the_checkpoint_has_other_names(tmp_path, names, term):
    runner = build_runner(tmp_path)
    write_checkpoint(runner, tmp_path / 'a.pth', names)
    with pytest.raises(ValueError, match=f'the checkpoint.*{term}'):
        runner.test()


def test_num_classes_of_the_checkpoint_stays_if_a_folder_is_missing(tmp_path):
    runner = build_runner(tmp_path, test=4)
    write_checkpoint(runner, tmp_path / 'a.pth', [f'c{n}' for n in range(5)])
    with pytest.raises(ValueError, match='c4.*classes=FILE') as error:
        runner.test()
    assert 'num_classes' not in str(error.value)


def test_resuming_stops_if_names_differ(tmp_path):
    runner = build_runner(tmp_path)
    write_checkpoint(runner, tmp_path / 'a.pth', OTHERS)
    runner._resume = True
    with pytest.raises(ValueError, match='zzz'):
        runner.train()
    write_checkpoint(runner, tmp_path / 'a.pth', [f'c{n}' for n in range(5)])
    with pytest.raises(ValueError, match='only weights'):
        runner.train()


def test_fine_tuning_starts_from_other_classes(tmp_path):
    runner = build_runner(tmp_path)
    write_checkpoint(runner, tmp_path / 'a.pth', OTHERS)
    with pytest.raises(AssertionError, match='an image was loaded'):
        runner.train()


def test_list_is_refused_if_folders_have_another_order(tmp_path):
    write_images(tmp_path / 'data', per_class=1, size=8)
    runner = build_runner(tmp_path, train=4, val=4)
    dataset = CustomDataset(
        data_root=str(tmp_path / 'data'),
        classes=['oak', 'elm', 'beech', 'ash'],
    )
    runner._train_dataloader = DataLoader(dataset)
    runner._val_dataloader = DataLoader(dataset)
    runner.model.head.num_classes = 4
    with pytest.raises(ValueError, match='ClassFolders'):
        runner.train()


def test_training_stops_if_a_metric_needs_more_classes(tmp_path):
    runner = build_runner(tmp_path)
    runner._val_evaluator = dict(type='Accuracy', topk=(1, 6))
    with pytest.raises(ValueError, match='topk'):
        runner.train()


def test_training_stops_if_there_is_no_batch(tmp_path):
    runner = build_runner(tmp_path)
    runner._train_dataloader = DataLoader(Leaves(5), 7, drop_last=True)
    with pytest.raises(ValueError, match='drop_last'):
        runner.train()


@pytest.mark.parametrize('step', ['val', 'test'])
def test_val_and_test_alone(tmp_path, step):
    runner = build_runner(tmp_path, **{step: 6})
    with pytest.raises(
        ValueError, match=f'6 classes in the {step} set; add.*=6`'
    ):
        getattr(runner, step)()


def test_agreement_goes_on_to_the_images(tmp_path):
    with pytest.raises(AssertionError, match='an image was loaded'):
        build_runner(tmp_path).train()


def test_set_without_class_names_is_let_through(tmp_path, caplog):
    runner = build_runner(tmp_path, test=None)
    runner.logger.addHandler(caplog.handler)
    with pytest.raises(AssertionError, match='an image was loaded'):
        runner.test()
    assert 'test_dataloader.dataset.classes=FILE' in caplog.text


def test_model_under_test_time_augmentation(tmp_path):
    runner = build_runner(tmp_path, test=7)
    runner.model = AverageClsScoreTTA(module=runner.model)
    with pytest.raises(ValueError, match='is 5, .* 7 classes'):
        runner.test()


LORA = dict(type='mmclca.LoRAModel', targets=[dict(type='.*mix')])


@pytest.mark.parametrize('around', [None, LORA])
def test_a_teacher_has_the_same_classes(tmp_path, around):
    student = dict(
        type='mmclca.DistilledClassifier',
        backbone=RESMLP,
        head=dict(type='LinearClsHead', num_classes=5, in_channels=24),
    )
    teacher = dict(student, type='ImageClassifier')
    names = [f'c{n}' for n in (0, 1, 2, 3, 5)]
    student['teacher'] = dict(
        model=teacher,
        checkpoint=str(tmp_path / 'teacher.pth'),
        loss=dict(type='mmclca.DeiTDistillation'),
    )
    runner = build_runner(tmp_path)
    if around:
        student = dict(around, module=student)
    runner.model = MODELS.build(student)
    kept = dict(
        state_dict=MODELS.build(teacher).state_dict(),
        meta=dict(dataset_meta=dict(classes=names)),
    )
    torch.save(kept, tmp_path / 'teacher.pth')
    with pytest.raises(ValueError, match="no 'c4' "):
        runner.train()
    kept['meta']['dataset_meta']['classes'] = [f'c{n}' for n in range(5)]
    kept['state_dict']['head.fc.weight'][0] = torch.nan
    torch.save(kept, tmp_path / 'teacher.pth')
    runner = build_runner(tmp_path)
    runner.model = MODELS.build(student)
    with pytest.raises(ValueError, match='NaN'):
        runner.train()


def test_a_run_with_lora_gets_the_hook():
    plain = dict(head=dict(num_classes=5))
    for model in (plain, dict(LORA, module=plain)):
        cfg = Config(dict(model=model))
        use_class_count(cfg)
        assert cfg.custom_hooks[0].type.endswith('ClassCountHook')
