# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# The recipe of the public codes of TransFG and SIM-Trans: SGD, 500 steps of
# warm-up, a cosine to 0, gradients clipped. They train in half precision:
# tools/train.py --amp, on a GPU. It counts iterations, which a sweep does not.
_base_ = './_ffvt_2000i.py'
optim_wrapper = dict(optimizer=dict(lr=0.03))
param_scheduler = _base_.param_scheduler
param_scheduler[1].T_max = 9500
train_cfg = dict(max_iters=10000)
