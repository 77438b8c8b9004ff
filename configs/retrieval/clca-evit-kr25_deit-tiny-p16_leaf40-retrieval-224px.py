# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# Retrieval with CLA features: test images of leaf40 query training images.
# Reproduces: nothing in the paper.
# Expected: measured in docs/retrieval.md.
# Evaluation: test split against training split; mAP, recall@k.
# Command: python tools/test.py \
#   configs/retrieval/clca-evit-kr25_deit-tiny-p16_leaf40-retrieval-224px.py \
#   CHECKPOINT  (of the config below)
_base_ = '../clca/clca-evit-kr25_deit-tiny-p16_1xb32-50e_leaf40-224px.py'
model = dict(
    _delete_=True,
    type='mmclca.TokenReductionRetriever',
    image_encoder={{_base_.model}},
    data_preprocessor={{_base_.model.data_preprocessor}},
    feature='pre_logits',
    prototype=dict(
        batch_size=48,
        num_workers=4,
        sampler=dict(type='DefaultSampler', shuffle=False),
        collate_fn=dict(type='default_collate'),
        dataset=dict(
            type='CustomDataset',
            data_root={{_base_.data_root}},
            classes={{_base_.leaf40.classes}},
            ann_file='train_3shot.txt',
            pipeline={{_base_.test_pipeline}},
        ),
    ),
)
val_evaluator = dict(
    _delete_=True, type='mmclca.RetrievalMetric', topk=(1, 5, 10)
)
test_evaluator = val_evaluator
custom_hooks = [dict(type='PrepareProtoBeforeValLoopHook')]
