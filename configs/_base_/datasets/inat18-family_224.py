# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# iNaturalist 2018 with its 1,118 families as labels, prepared as Grafit does:
# four views in training. level= 'kingdom' to 'genus' and 'name' for others.
# The environment variable MMCLCA_DATA names the dataset folder; in it,
# inat2018 has train_val2018, train2018.json, val2018.json, categories.json.
_base_ = ['./inat18-deit_224.py', './leaves_views_224.py']
num_classes = 1118
train_dataloader = dict(
    dataset=dict(level='family', pipeline=_base_.four_views)
)
val_dataloader = dict(dataset=dict(level='family'))
test_dataloader = val_dataloader
val_evaluator = dict(topk=(1,))
test_evaluator = val_evaluator
