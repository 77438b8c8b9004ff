# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""What each token-reduction method costs, and how fast it runs.

A table of method, keep rate and with or without CLCA: multiply-accumulates,
tokens, images per second, and the speed against timm's plain ViT of the same
size. The models of a method and timm's run in turns, and the ratio is the
median over the turns.
"""

import argparse
import platform
import shlex
import sys
from collections.abc import Iterator
from contextlib import redirect_stdout
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from statistics import median

import timm
import torch
from mmpretrain.models.backbones import VisionTransformer

from mmclca.models import TokenReducer
from mmclca.registry import MODELS
from mmclca.utils.flops import Cost, count_config
from mmclca.utils.throughput import peak_memory, seconds_in_turns

PATCH_SIZE = 16
NUM_CLASSES = 80
PLAIN = 'none'
TIMM = 'timm'
AMP = dict(bf16=torch.bfloat16, fp16=torch.float16)
METHODS = sorted(
    name
    for name, registered in MODELS.module_dict.items()
    if issubclass(registered, TokenReducer) and registered is not TokenReducer
)


def parse_args():
    parser = argparse.ArgumentParser(
        description=__doc__.partition('\n\n')[2].replace('\n', ' ')
    )
    parser.add_argument(
        '--arch',
        default='deit-small',
        choices=sorted(VisionTransformer.arch_zoo),
        metavar='NAME',
        help='of VisionTransformer in MMPretrain (default: %(default)s, '
        'which is ViT-S/16; small is another one, of 8 layers)',
    )
    parser.add_argument(
        '--methods',
        nargs='+',
        default=[PLAIN, *METHODS],
        choices=[PLAIN, *METHODS],
        metavar='NAME',
        help='of %(choices)s (default: all)',
    )
    parser.add_argument(
        '--keep-rates',
        nargs='+',
        type=_keep_rate,
        default=[1.0, 0.7, 0.5, 0.25, 0.1],
        metavar='RATE',
        help='default: %(default)s',
    )
    add_timing(parser)
    parser.add_argument(
        '--out', type=Path, help='write the table to a Markdown page'
    )
    args = parser.parse_args()
    check(parser, args)
    return args


def add_timing(parser):
    for name, default, meaning in (
        ('--img-size', 224, 'side of an image in pixels'),
        ('--batch', 8, 'images in a batch'),
        ('--rounds', 5, 'timed passes of each model, after two others'),
        ('--threads', 1, 'threads on the CPU'),
    ):
        parser.add_argument(
            name,
            type=_positive,
            default=default,
            help=f'{meaning} (default: %(default)s)',
        )
    parser.add_argument(
        '--device',
        default='cpu',
        help='cpu, cuda or cuda:1 (default: %(default)s)',
    )
    parser.add_argument(
        '--amp',
        choices=list(AMP),
        help='automatic mixed precision (default: float32)',
    )


def _keep_rate(text):
    rate = float(text)
    if not 0 < rate <= 1:
        raise argparse.ArgumentTypeError(f'{text}: above 0 and at most 1')
    return rate


def _positive(text):
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f'{text}: at least 1')
    return number


def check(parser, args):
    """Refuse what would fail when the measuring has begun, or after it."""
    if args.img_size % PATCH_SIZE:
        parser.error(
            f'--img-size {args.img_size}: a multiple of {PATCH_SIZE}, the '
            'size of a patch'
        )
    try:
        torch.empty(0, device=args.device)
        if args.out:
            args.out.parent.mkdir(parents=True, exist_ok=True)
            args.out.open('a').close()
    except (AssertionError, RuntimeError) as error:
        parser.error(f'--device {args.device}: {str(error).splitlines()[0]}')
    except OSError as error:
        parser.error(f'--out {args.out}: {error.strerror}')


@dataclass
class Row:
    """What was measured of one model.

    Args:
        method (str): Name of the reducer, or ``PLAIN``.
        keep_rate (float): Its keep rate.
        clca (bool): Whether with cache and CLA head.
        cost (Cost): Multiply-accumulates and tokens.
        images_per_second (float): Median.
        ratio (float): Speed against timm's, median.
        memory (int, optional): Bytes of a pass, on a GPU.
    """

    method: str
    keep_rate: float
    clca: bool
    cost: Cost
    images_per_second: float
    ratio: float
    memory: int | None


def reduce_at(arch):
    """Layers 3, 6 and 9 of twelve, and alike in deeper ones."""
    num_layers = VisionTransformer.arch_zoo[arch]['num_layers']
    return tuple(num_layers * quarter // 4 for quarter in (1, 2, 3))


def classifier(arch, img_size, method, keep_rate, clca):
    """Config of a classifier, as in the CLCA paper."""
    layers = reduce_at(arch)
    embed_dims = VisionTransformer.arch_zoo[arch]['embed_dims']
    backbone = dict(
        type='mmclca.TokenReductionViT',
        arch=arch,
        img_size=img_size,
        patch_size=PATCH_SIZE,
        reduce_at=layers,
    )
    head = dict(
        type='LinearClsHead', num_classes=NUM_CLASSES, in_channels=embed_dims
    )
    if method != PLAIN:
        backbone['reducer'] = dict(
            type=f'mmclca.{method}', keep_rate=keep_rate
        )
    if clca:
        backbone['cache'] = dict(type='mmclca.CrossLayerCache')
        backbone.update(out_indices=(*layers, -1), final_norm=False)
        head.update(type='mmclca.CLAHead', num_layers=len(layers) + 1)
    return dict(
        type='mmclca.TokenReductionClassifier', backbone=backbone, head=head
    )


def timm_vit(arch, img_size):
    """timm's plain ViT of the same size."""
    arch = VisionTransformer.arch_zoo[arch]
    return timm.models.VisionTransformer(
        img_size=img_size,
        patch_size=PATCH_SIZE,
        num_classes=NUM_CLASSES,
        embed_dim=arch['embed_dims'],
        depth=arch['num_layers'],
        num_heads=arch['num_heads'],
        mlp_ratio=arch['feedforward_channels'] / arch['embed_dims'],
    )


def measure(args, method) -> Iterator[Row]:
    """Time the models of a method and timm's in turns."""
    rates = [1.0] if method == PLAIN else args.keep_rates
    configs = {
        (rate, clca): classifier(args.arch, args.img_size, method, rate, clca)
        for rate in rates
        for clca in (False, True)
    }
    device, amp = torch.device(args.device), AMP.get(args.amp)
    with device:
        models = {key: MODELS.build(c) for key, c in configs.items()}
        models[TIMM] = timm_vit(args.arch, args.img_size)
        inputs = torch.randn(args.batch, 3, args.img_size, args.img_size)
    seconds = seconds_in_turns(models, inputs, args.rounds, amp)
    for key, config in configs.items():
        pairs = zip(seconds[TIMM], seconds[key], strict=True)
        yield Row(
            method,
            *key,
            count_config(config),
            args.batch / median(seconds[key]),
            median(plain / own for plain, own in pairs),
            peak_memory(models[key], inputs, amp) if inputs.is_cuda else None,
        )


def head_lines(args):
    """Header of the table."""
    layers = '/'.join(map(str, (*reduce_at(args.arch), 'last')))
    names = [
        'method',
        'keep rate',
        'CLCA',
        'GMACs',
        'of distances',
        f'tokens leaving layers {layers}',
        'images/s',
        'speed / timm',
    ]
    names += ['MiB'] * (torch.device(args.device).type == 'cuda')
    return _line(names), _line(['---'] * len(names))


def table_line(row, layers):
    """The line of a model in the table."""
    distances, tokens = row.cost.distances, row.cost.tokens
    cells = [
        row.method,
        f'{row.keep_rate:g}',
        'yes' if row.clca else 'no',
        f'{row.cost.flops / 1e9:.2f}',
        f'{distances / 1e9:.2f}' if distances else '',
        '/'.join(str(tokens[layer]) for layer in (*layers, -1)),
        f'{row.images_per_second:.1f}',
        f'{row.ratio:.2f}',
    ]
    if row.memory is not None:
        cells.append(f'{row.memory / 2**20:.0f}')
    return _line(cells)


def _line(cells):
    return f'| {" | ".join(cells)} |'


def setting(args):
    """A sentence on what ran where."""
    device = torch.device(args.device)
    if device.type == 'cuda':
        place = torch.cuda.get_device_name(device)
    else:
        capability = torch.backends.cpu.get_cpu_capability()
        place = (
            f'CPU ({platform.machine()}, {capability}), '
            f'{args.threads} thread{"s" * (args.threads > 1)}'
        )
    return (
        f'`{args.arch}`, patches of {PATCH_SIZE} px, images of '
        f'{args.img_size} px, batch {args.batch}, '
        f'{args.amp or "float32"}, {place}, PyTorch {torch.__version__}, '
        f'timm {timm.__version__}, median of {args.rounds} rounds, '
        f'{date.today()}.'
    )


def page(args, lines):
    """The Markdown page of a table."""
    command = shlex.join(['python', 'tools/benchmark/reducers.py'])
    options = shlex.join(sys.argv[1:])
    return '\n'.join(
        [
            '# Token-reduction methods: cost and speed',
            '',
            setting(args),
            '',
            *lines,
            '',
            f'Written by `{command} {options}`.',
            '',
        ]
    )


def main():
    args = parse_args()
    torch.set_num_threads(args.threads)
    torch.manual_seed(0)
    lines = list(head_lines(args))
    print(setting(args), '', *lines, sep='\n', flush=True)
    for method in args.methods:
        with redirect_stdout(sys.stderr):  # what mmengine logs
            rows = list(measure(args, method))
        new = [table_line(row, reduce_at(args.arch)) for row in rows]
        print(*new, sep='\n', flush=True)
        lines += new
    if args.out:
        args.out.write_text(page(args, lines), encoding='utf-8')


if __name__ == '__main__':
    main()
