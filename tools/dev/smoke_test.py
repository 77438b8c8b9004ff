# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Run the first commands of users with an installed mmclca.

``python tools/dev/smoke_test.py FOLDER``, with the interpreter that has the
package. The commands run in FOLDER, on synthetic leaves and a small network
with random weights, so nothing is downloaded.
"""

import subprocess
import sys
from pathlib import Path

import torch
from safetensors.torch import save_file
from timm.models.vision_transformer import VisionTransformer

import mmclca
from mmclca.datasets.synthetic_leaves.data_set import draw_data_set

LEAVES = dict(
    classes=3,
    species=1,
    per_class=4,
    per_plant=1,
    size=64,
    seed=0,
    difference=1.0,
    val_fraction=0.25,
    test_fraction=0.0,
)
NETWORK = dict(embed_dim=64, depth=4, num_heads=1, patch_size=32)
COMMANDS = (
    '--version',
    'fit leaves/images --weights tiny.safetensors --probe-only',
    'predict model leaves/images --out results.csv',
    'export model --out model.onnx',
    'report model',
)


def write_inputs(folder: Path) -> None:
    """Draw the photos, and write the weights."""
    draw_data_set(folder / 'leaves', LEAVES)
    torch.manual_seed(0)
    weights = VisionTransformer(**NETWORK).state_dict()
    save_file(weights, folder / 'tiny.safetensors')


def main(folder: Path) -> None:
    """Run all commands; stop at the first that fails."""
    package = Path(mmclca.__file__).resolve().parent
    if 'site-packages' not in package.parts:
        sys.exit(f'{package} is a checkout, not an installed package')
    folder.mkdir(parents=True)
    write_inputs(folder)
    for command in COMMANDS:
        print(f'== mmclca {command}', flush=True)
        arguments = [sys.executable, '-m', 'mmclca', *command.split()]
        subprocess.run(arguments, cwd=folder, check=True)
    for name in ('model/report.html', 'results.csv', 'model.onnx'):
        if not (folder / name).is_file():
            sys.exit(f'{name} was not written')


if __name__ == '__main__':
    main(Path(sys.argv[1]))
