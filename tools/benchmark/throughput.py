# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""How fast models with token reduction are, and what their FLOPs promise.

Any configs, and any list of architectures, methods, keep rates and image
sizes, interleaved with timm's plain ViT of the same size or with another
baseline: multiply-accumulates, speed, efficiency (the speed-up as a share of
the ratio of multiply-accumulates) and peak memory, of inference or of a
training step. Of several image sizes it says how time, memory and
multiply-accumulates grow with the pixels.
"""

from mmclca.cli import run_command

if __name__ == '__main__':
    run_command('throughput')
