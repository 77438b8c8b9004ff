# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# The recipe in FFVT's public code for SoyLocal: the recipe for Cotton80 with
# more iterations.
_base_ = './_ffvt_2000i.py'
param_scheduler = _base_.param_scheduler
param_scheduler[1].T_max = 4250
train_cfg = dict(max_iters=4750)
