# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""The values that a schedule gives, without images and without a model."""

import tempfile

import torch
from mmengine.hooks import Hook
from mmengine.model import BaseModel
from mmengine.runner import Runner

# of mmengine's Runner, none of which is needed
HOOKS = ('runtime_info', 'timer', 'sampler_seed', 'logger', 'checkpoint')


class OneParameter(BaseModel):
    """Has a parameter for an optimizer, and learns nothing."""

    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(1))

    def forward(self, inputs, data_samples=None, mode='tensor'):
        return inputs

    def train_step(self, data, optim_wrapper):
        optim_wrapper.step()  # schedulers count the steps
        return {}


class Batches(list):
    """What a loop reads of a data loader; an infinite one is iterated anew."""

    metainfo = {}

    @property
    def dataset(self):
        return self


class RecordHook(Hook):
    """Notes the value that each iteration is trained with.

    Args:
        parameter (str): 'lr', 'momentum' or 'wd'.
    """

    def __init__(self, parameter):
        self.parameter = parameter
        self.values = []

    def before_train_iter(self, runner, batch_idx, data_batch=None):
        self.values.append(value_of(runner.optim_wrapper, self.parameter))


def value_of(optim_wrapper, parameter):
    if parameter == 'wd':
        return optim_wrapper.param_groups[0].get('weight_decay', 0)
    if parameter == 'momentum':
        return optim_wrapper.get_momentum()['momentum'][0]
    return optim_wrapper.get_lr()['lr'][0]


def recorded_values(cfg, num_batches, parameter, log_level):
    """Go through a training without images and model; gives the values of
    all iterations."""
    record = RecordHook(parameter)
    with tempfile.TemporaryDirectory() as work_dir:
        runner = Runner(
            model=OneParameter(),
            work_dir=work_dir,
            train_dataloader=Batches(range(num_batches)),
            train_cfg=cfg.train_cfg,
            optim_wrapper=dict(
                type='OptimWrapper', optimizer=cfg.optim_wrapper.optimizer
            ),
            param_scheduler=cfg.get('param_scheduler'),
            default_hooks=dict.fromkeys(HOOKS),
            custom_hooks=[record],
            default_scope=cfg.get('default_scope', 'mmpretrain'),
            log_level=log_level,
        )
        runner.train()
    return record.values
