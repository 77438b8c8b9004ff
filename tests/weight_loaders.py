# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Each way to load weights into a classifier.

A loader takes the path of a file, the config of a classifier and a work dir,
and returns the classifier.
"""

from functools import partial

import mmpretrain
import torch
from foreign_models import HEAD
from mmengine.config import Config
from mmengine.runner import Runner, load_checkpoint
from safetensors.torch import load_file

from mmclca.apis import load_classifier
from mmclca.checkpoints.load import load
from mmclca.engine.runner import SafeRunner
from mmclca.registry import MODELS


def by_load(path, cfg, work_dir):
    model = MODELS.build(cfg)
    load(model, path)
    return model


def by_state_dict(path, cfg, work_dir):
    model = MODELS.build(cfg)
    is_pickle = path.endswith('.pth')
    model.load_state_dict((torch.load if is_pickle else load_file)(path))
    return model


def by_mmengine(path, cfg, work_dir):
    model = MODELS.build(cfg)
    load_checkpoint(model, path)
    return model


def by_runner(path, cfg, work_dir, runner_class):
    name = str(work_dir)
    options = dict(load_from=path, default_scope='mmpretrain')
    runner = runner_class(cfg, name, experiment_name=name, **options)
    runner.load_or_resume()
    return runner.model


def by_get_model(path, cfg, work_dir):
    return mmpretrain.get_model(Config(dict(model=cfg)), pretrained=path)


def by_init_cfg(path, cfg, work_dir, **options):
    init = dict(type='Pretrained', checkpoint=path, **options)
    model = MODELS.build(dict(cfg, init_cfg=init))
    model.init_weights()
    return model


def by_backbone(path, cfg, work_dir):
    init = dict(type='Pretrained', checkpoint=path)
    backbone = dict(cfg['backbone'], init_cfg=init)
    model = MODELS.build(dict(cfg, backbone=backbone))
    model.init_weights()
    return model


def by_pretrained(path, cfg, work_dir):
    init = dict(type='mmclca.Pretrained', checkpoint=path)
    model = MODELS.build(dict(cfg, init_cfg=init))
    model.init_weights()
    return model


def by_teacher(path, cfg, work_dir):
    loss = dict(type='mmclca.LogitDistillation')
    teacher = dict(model=cfg, checkpoint=path, loss=loss)
    student = MODELS.build(dict(cfg, teacher=teacher))
    student.init_weights()
    return student.teacher.model


def by_classifier(path, cfg, work_dir):
    dataset = dict(type='CustomDataset', pipeline=[])
    loader = dict(test_dataloader=dict(dataset=dataset))
    return load_classifier(Config(dict(model=cfg, **loader)), path)


LOADERS = dict(
    load=by_load,
    SafeRunner=partial(by_runner, runner_class=SafeRunner),
    init_cfg=by_init_cfg,
    Pretrained=by_pretrained,
    Teacher=by_teacher,
    load_classifier=by_classifier,
    load_state_dict=by_state_dict,
    load_checkpoint=by_mmengine,
    Runner=partial(by_runner, runner_class=Runner),
    get_model=by_get_model,
    backbone=by_backbone,
)
# those of mmengine and mmpretrain, for any classifier
PLAIN = ('load_checkpoint', 'Runner', 'get_model', 'init_cfg', 'backbone')
# which need a classifier in the file
STRICT = ('load', 'Teacher', 'load_classifier', 'load_state_dict')
LINEAR = dict(HEAD, type='LinearClsHead')
KINDS = dict(
    ours=dict(type='mmclca.TokenReductionClassifier'),
    vit_head=dict(type='ImageClassifier'),
    linear_head=dict(type='ImageClassifier', head=LINEAR),
)
