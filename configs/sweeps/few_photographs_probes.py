# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# Three photographs a class, nothing trained: classifiers on the features of a
# frozen network, beside the runs of configs/sweeps/few_photographs.py, on ten
# draws. tools/sweep.py does not read this file: what is missing among these is
# measured by `python tools/research/pages.py few_photographs`.
# Results: docs/results/few_photographs.md.
# The environment variables MMCLCA_DATA and MMCLCA_WEIGHTS name the folders
# of data sets and of weights.
_data = '{{$MMCLCA_DATA:data}}'
_folder = '{{$MMCLCA_WEIGHTS:weights}}'
_draws = '{{ fileDirname }}/../few_shot/draws'
_weights = {
    'deit-tiny-p16': 'deit_tiny_patch16_224.pth',
    'vit-tiny-p16': 'vit_tiny_patch16_224.safetensors',
}
_full = dict(method='', keep_rate=1.0, img_size=224)
_reduced = [
    dict(_full, method=method, keep_rate=keep_rate)
    for method in ('EViT', 'ToMe')
    for keep_rate in (0.5, 0.25, 0.1)
]
_half = _reduced[0]
# what is read: the averages of layers 0 to 8, or CLS of the last layer
_several = dict(layers=list(range(9)), out_type='average')
_last = dict(layers=[11], out_type='cls_token')
# strength None: folds of the training images choose it
_ridge = dict(classifier='ridge', strength=None)
_logistic = dict(classifier='logistic', strength=None)
_probe = dict(line='our probe', **_several, **_ridge)
_arms = [
    dict(
        line='nearest class mean, last layer',
        frozen=_full,
        **_last,
        classifier='ncm',
        strength=None,
    ),
    dict(
        line='1-nearest neighbour, last layer',
        frozen=_full,
        **_last,
        classifier='knn',
        strength=1,
    ),
]
for _frozen in (_full, *_reduced):
    _arms += [
        dict(
            line='logistic regression, last layer',
            frozen=_frozen,
            **_last,
            **_logistic,
        ),
        dict(
            line='logistic regression, layers 0 to 8',
            frozen=_frozen,
            **_several,
            **_logistic,
        ),
        dict(_probe, frozen=_frozen),
    ]
_arms += [
    dict(
        _probe,
        line='our probe, fewer layers',
        frozen=_frozen,
        layers=list(range(depth)),
    )
    for _frozen in (_full, _half)
    for depth in (7, 6, 5, 4)
]
# ours keeps half of the tokens and pays less by smaller images; rivals with
# smaller images keep all tokens
_arms += [
    dict(
        _probe,
        line='our probe, smaller image',
        frozen=dict(_full, img_size=size),
    )
    for size in (160, 144, 128)
]
_arms += [
    dict(_probe, frozen=dict(_half, img_size=size))
    for size in (208, 192, 160, 144)
]


def _network(frozen, layers, out_type, **others):
    """A name of what costs, the same with either weights."""
    method = (frozen['method'] or 'full').lower()
    return (
        f'{method}-kr{100 * frozen["keep_rate"]:g}_{frozen["img_size"]}px_'
        f'{out_type}-{layers[0]}-{layers[-1]}'
    )


# a result each: its name, what it is measured with, and what it says of itself
probes = [
    dict(
        name=f'{dataset}_{backbone}_{_network(**arm)}_{arm["classifier"]}',
        data=f'{_data}/{dataset}',
        draws=f'{_draws}/{dataset}',
        weights=f'{_folder}/{file}',
        record=dict(
            dataset=dataset,
            arm=dict(arm, frozen=dict(arm['frozen'], backbone=backbone)),
            network=_network(**arm),
        ),
    )
    for dataset in ('leaf40_white', 'leaf40')
    for backbone, file in _weights.items()
    for arm in _arms
]
# what tables call the arms that are trained, by the word before the draw in a
# variant and by what they have of CLCA
trained = {
    'ours-base': 'our probe, trained on',
    'small-base': 'our probe, trained on, smaller image',
    'paper-clca': 'CLCA, as in the paper',
    'paper-cla': 'CLA alone',
    'full-base': 'fine-tuning',
    'plain-base': 'fine-tuning',
}
# all arms in the order of tables
lines = [
    'our probe',
    'CLCA, as in the paper',
    'CLA alone',
    'fine-tuning',
    'our probe, trained on',
    'our probe, trained on, smaller image',
    'our probe, smaller image',
    'our probe, fewer layers',
    'logistic regression, layers 0 to 8',
    'logistic regression, last layer',
    '1-nearest neighbour, last layer',
    'nearest class mean, last layer',
]
