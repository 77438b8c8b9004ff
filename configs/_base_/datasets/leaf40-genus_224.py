# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# leaf40 with the 35 genera of its 40 species as labels; level='family' for
# its 27 families.
_base_ = './leaf40_224.py'
num_classes = 35
data_root = '{{$MMCLCA_DATA:data}}/leaf40_white'
leaf40 = dict(
    type='mmclca.CoarseDataset',
    data_root=data_root,
    classes=f'{data_root}/classes.txt',
    levels='{{ fileDirname }}/leaf40_levels.csv',
    level='genus',
)
train_dataloader = dict(dataset=leaf40)
val_dataloader = dict(dataset=leaf40)
test_dataloader = dict(dataset=leaf40)
