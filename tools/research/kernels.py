# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Time by kernel of token reduction and of the plain ViT, on a GPU or CPU.

``python tools/research/kernels.py --device cuda --amp bf16 --batch 512 1``
prints, per batch size and model, the kernels that take most of the time:
milliseconds per pass and calls per pass. The difference from the plain ViT
tells what the reduction costs.
"""

import pandas as pd
import torch
from speed.candidates import Size, mmpretrain_vit, vary_all
from torch.profiler import ProfilerActivity, profile

from mmclca import cli
from mmclca.benchmark.steps import Setting, make_step
from mmclca.cli.arguments import keep_rate, positive
from mmclca.utils.messages import print_safe

METHODS = 'none', 'EViT', 'ATC', 'DiffRate'
WARM_UP = 3


def profile_kernels(candidate, setting, passes):
    """Return milliseconds and calls per pass by kernel, the slowest first."""
    step = make_step(candidate, setting)
    for _ in range(WARM_UP):
        step()
    activities = [ProfilerActivity.CPU]
    if setting.on_gpu:
        activities.append(ProfilerActivity.CUDA)
        torch.cuda.synchronize(setting.device)
    with profile(activities=activities) as profiled:
        for _ in range(passes):
            step()
        if setting.on_gpu:
            torch.cuda.synchronize(setting.device)
    events = profiled.key_averages()
    if setting.on_gpu:  # kernels alone, without the calls that launch them
        events = [x for x in events if x.device_type.name == 'CUDA']
    rows = [
        (x.key, x.self_cpu_time_total + x.self_device_time_total, x.count)
        for x in events
    ]
    table = pd.DataFrame(rows, columns=['kernel', 'ms', 'calls'])
    table = table.groupby('kernel', as_index=False).sum()
    table['ms'] /= 1e3 * passes  # microseconds in all passes
    table['calls'] /= passes
    return table.sort_values('ms', ascending=False, ignore_index=True)


def main():
    parser = cli.Parser(description=__doc__)
    parser.add('--arch NAME', 'architecture in MMPretrain', 'deit-small')
    parser.add('--img-size PIXELS', 'image size', 224, type=positive)
    parser.add('--methods NAME', 'reducers, or none', METHODS, nargs='+')
    parser.add('--keep-rate RATE', 'keep rate', 0.5, type=keep_rate)
    parser.flag('--clca', 'with cache and CLA head')
    parser.add('--batch', 'batch sizes', [512, 1], nargs='+', type=positive)
    parser.add('--amp', 'precision', choices=['bf16', 'fp16'])
    parser.add('--passes', 'profiled passes', 5, type=positive)
    parser.add('--rows', 'kernels to print', 15, type=positive)
    parser.add('--threads', 'PyTorch threads', 1, type=positive)
    parser.share('--device')
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    vit = mmpretrain_vit(Size.from_arch(args.arch, args.img_size))
    models = vary_all(vit, args.methods, [args.keep_rate], [args.clca])
    for batch in args.batch:
        device = args.device or 'cpu'
        setting = Setting(device, args.threads, batch, args.amp)
        for model in models:
            table = profile_kernels(model, setting, args.passes)
            total, calls = table['ms'].sum(), table['calls'].sum()
            print_safe(
                '',
                f'{model.label}, batch {batch}: {total:.3f} ms in '
                f'{calls:.0f} kernels per pass',
                *table.head(args.rows).to_string(index=False).splitlines(),
            )


if __name__ == '__main__':
    cli.run(main)
