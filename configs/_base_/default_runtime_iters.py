# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# The same, where a training counts iterations.
_base_ = './default_runtime.py'
default_hooks = dict(checkpoint=dict(by_epoch=False, interval=1000))
log_processor = dict(by_epoch=False)
