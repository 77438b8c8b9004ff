# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# The recipe of FFVT's public code for soy cultivars of the local set: that for
# cotton, longer.
_base_ = './_ffvt_2000i.py'
param_scheduler = _base_.param_scheduler
param_scheduler[1].T_max = 4250
train_cfg = dict(max_iters=4750)
