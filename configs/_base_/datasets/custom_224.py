# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# A folder of your own images with train.txt, val.txt (lines `path label`) and
# classes.txt; tools/dataset_converters/split_folder.py writes these files.
# The environment variable MMCLCA_DATA names the dataset folder.
_base_ = './leaves_bs32_224.py'
num_classes = 10
data_root = '{{$MMCLCA_DATA:data}}/my_leaves'
my_leaves = dict(
    type='CustomDataset',
    data_root=data_root,
    classes=f'{data_root}/classes.txt',
)
train_dataloader = dict(dataset=dict(**my_leaves, ann_file='train.txt'))
val_dataloader = dict(dataset=dict(**my_leaves, ann_file='val.txt'))
test_dataloader = val_dataloader
