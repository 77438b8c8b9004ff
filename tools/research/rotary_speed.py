# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Speed of ``reduce_tokens`` with rotary positions, next to DeiT-S.

``python tools/research/rotary_speed.py`` prints the speed-up over timm and
the efficiency, which is the speed-up divided by the ratio of
multiply-accumulates. Each pass follows one by timm's model.
"""

from statistics import median

import timm
import torch

import mmclca
from mmclca import cli
from mmclca.benchmark.steps import Setting, interleaved_seconds
from mmclca.cli.arguments import positive
from mmclca.utils.messages import print_safe

NETWORKS = 'deit_small_patch16_224', 'vit_small_patch16_dinov3'
METHODS = dict(none=(None, None), EViT=('EViT', 0.5), ToMe=('ToMe', 0.5))
# image sizes and batch sizes
SIZES = (224, 1), (224, 8), (448, 1)
TIMM = 'timm'


@torch.inference_mode()
def measure(network, img_size, batch, rounds):
    """Yield method, speed-up and efficiency for a network."""
    torch.manual_seed(0)
    model = timm.create_model(network, img_size=img_size, num_classes=0)
    model.eval()
    images = torch.randn(batch, 3, img_size, img_size)
    models = {TIMM: model}
    for name, (method, keep_rate) in METHODS.items():
        models[name] = mmclca.reduce_tokens(model, method, keep_rate)
    steps = {
        name: lambda model=model: model(images)
        for name, model in models.items()
    }
    setting = Setting('cpu', torch.get_num_threads(), batch)
    seconds = interleaved_seconds(steps, setting, rounds)
    gmacs = {name: mmclca.cost(x).gmacs for name, x in models.items()}
    for name in METHODS:
        pairs = zip(seconds[TIMM], seconds[name], strict=True)
        speed_up = median(before / after for before, after in pairs)
        yield name, speed_up, speed_up * gmacs[name] / gmacs[TIMM]


def main():
    parser = cli.Parser(description=__doc__)
    parser.add('--rounds', 'timed passes per model', 15, type=positive)
    parser.add('--threads', 'PyTorch threads', 1, type=positive)
    parser.add('--networks NAME', 'names in timm', NETWORKS, nargs='+')
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    print_safe('pixels  batch  method  speed-up  efficiency  network')
    for img_size, batch in SIZES:
        for network in args.networks:
            rows = measure(network, img_size, batch, args.rounds)
            for method, speed_up, efficiency in rows:
                print_safe(
                    f'{img_size:6}  {batch:5}  {method:6}  {speed_up:8.3f}  '
                    f'{efficiency:10.3f}  {network}'
                )


if __name__ == '__main__':
    cli.run(main)
