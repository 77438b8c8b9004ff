_base_ = './mae-finetune_100e.py'
param_scheduler = _base_.param_scheduler
param_scheduler[0].T_max = 300
mixup = dict(_delete_=True, augments=[dict(type='Mixup', alpha=0.2)])
loss = dict(_delete_=True, type='CrossEntropyLoss', use_soft=True)
train_cfg = dict(max_epochs=300)
