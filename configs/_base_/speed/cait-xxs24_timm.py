# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# timm's CaiT XXS-24.
model = dict(
    type='TimmClassifier',
    model_name='cait_xxs24_224',
    img_size=224,
    num_classes=1000,
)
