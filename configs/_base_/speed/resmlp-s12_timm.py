# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# timm's ResMLP S12.
model = dict(
    type='TimmClassifier',
    model_name='resmlp_12_224',
    img_size=224,
    num_classes=1000,
)
