# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Compare latencies predicted from one layer with those of exported models.

``python tools/research/latency_prediction.py --weights FILE`` prints a row per
candidate of ``fit``. ``--dims 384`` widens the ViT.
"""

from copy import deepcopy
from dataclasses import replace

from mmclca import cli
from mmclca.benchmark.layer_times import look_up_layer_times
from mmclca.benchmark.timing import ROUNDS, time_models
from mmclca.evaluation.cost import count_config
from mmclca.fitting.candidates import list_variants
from mmclca.fitting.model_config import build_config
from mmclca.fitting.weights import find_weights

CLASSES = 10
HEAD_DIMS = 64


def widen(pretrained, dims):
    """Return settings of a ViT with another number of channels."""
    backbone = deepcopy(pretrained.backbone)
    backbone['arch'] |= dict(
        embed_dims=dims,
        num_heads=dims // HEAD_DIMS,
        feedforward_channels=4 * dims,
    )
    return replace(pretrained, backbone=backbone)


def main():
    parser = cli.Parser(description=__doc__)
    parser.add('--weights', 'file or name of the weights of a ViT')
    parser.add('--dims', 'channels (default: those of the weights)', type=int)
    parser.add('--rounds', 'passes per model', ROUNDS, type=int)
    parser.add('--most', 'candidates (default: all)', type=int)
    args = parser.parse_args()
    pretrained = find_weights(args.weights)
    if args.dims:
        pretrained = widen(pretrained, args.dims)
    models = {
        variant: build_config(pretrained, variant, CLASSES).model.to_dict()
        for variant in list_variants(pretrained)[: args.most]
    }
    costs = {x: count_config(config) for x, config in models.items()}
    first = next(iter(models))
    times = look_up_layer_times(
        models[first]['backbone'], max(costs[first].attended)
    )
    measured, busy = time_models(models, 'onnx', 'cpu', args.rounds)
    print('| model | predicted (ms) | measured (ms) | error (%) |')
    print('| --- | --- | --- | --- |')
    for variant, cost in costs.items():
        ms = times.predict(cost, variant.method)
        error = 100 * (ms / measured[variant] - 1)
        print(
            f'| {variant.name}, {variant.img_size} px | {ms:.1f} '
            f'| {measured[variant]:.1f} | {error:+.1f} |'
        )
    print(busy or times.busy)


if __name__ == '__main__':
    cli.run(main)
