_base_ = './mirl-finetune_100e.py'
param_scheduler = _base_.param_scheduler
param_scheduler[0].update(T_max=60, warmup=30)
train_cfg = dict(max_epochs=60)
