# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Export a model to ONNX or torch.export."""

from mmclca.cli import run_command

if __name__ == '__main__':
    run_command('export')
