# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Where each command of the pages is run: the only list to add to.

A command of a tool is run as it is written, in a folder that ``doc_sandbox``
fills. ``NAMES`` and ``SMALLER`` say what is exchanged before that, ``NOT_RUN``
which commands are not run here, and why. Of those the tool still reads the
arguments.
"""

import re
import shlex
from typing import NamedTuple

WHAT_TO_DO = """
Fix the page or the tool. Where the command needs what a test cannot have, add
it to tests/doc_homes.py: NAMES for a word that stands for a file of the
reader's, SMALLER for options that make a training small, NOT_RUN, with the
reason, for what needs a GPU, a cluster, a network or minutes."""

# words that stand for something of the reader's, and what the sandbox has
NAMES = {
    'CONFIG': 'tiny.py',
    'CHECKPOINT': 'best.pth',
    'CKPT': 'best.pth',
    'IMAGES': 'new_leaves',
    'WORK_DIR': 'run',
    'FILE': 'deit_tiny_patch16_224.pth',
    'cuda': 'cpu',
    'infer_onnx.py': 'tools/deployment/infer_onnx.py',
}

# where another file is needed, before NAMES: command, word, file
INSTEAD = [
    (r'pipeline\.0\.transforms', 'CONFIG', 'cotton.py'),
    (r'data_pipeline\.py', 'CONFIG', 'cotton.py'),
    (r'leaf40-retrieval', 'CHECKPOINT', 'leaf40.pth'),
]

SMALL_IMAGES = """
train_cfg.max_epochs=1 train_cfg.val_interval=1 train_dataloader.num_workers=0
val_dataloader.num_workers=0 test_dataloader.num_workers=0
model.backbone.img_size=64 load_from=deit_tiny_patch16_224.pth
train_dataloader.dataset.pipeline.0.transforms.1.scale=(64,64)
train_dataloader.dataset.pipeline.1.crop_size=64
val_dataloader.dataset.pipeline.0.transforms.1.scale=(64,64)
val_dataloader.dataset.pipeline.1.crop_size=64
test_dataloader.dataset.pipeline.1.scale=(64,64)
test_dataloader.dataset.pipeline.2.crop_size=64
"""
ONE_EPOCH = 'train_cfg.max_epochs=1 train_dataloader.num_workers=0'
# what blocks of Python take, where the model of the sandbox takes less
SMALLER_PYTHON = {
    '(2, 3, 224, 224)': '(2, 3, 32, 32)',
    'range(22)': 'range(3)',
    "fit('photos/')": "fit('data/my_leaves', probe_only=True, "
    "weights='deit_tiny_patch16_224.pth')",
}


class Smaller(NamedTuple):
    """Options added to the commands that match."""

    command: str
    more: str


SMALLER = [
    # DeiT-Ti, one epoch on images of 64 px; weights from a local file
    Smaller(
        r'tools/train\.py .*_(custom|leaf40)-224px\.py',
        '--cfg-options ' + SMALL_IMAGES,
    ),
    # whose releases are not in the sandbox
    Smaller(
        r'tools/train\.py configs/(deit3?|cait|patchconvnet|resmlp)/',
        'load_from=None',
    ),
    Smaller(r'synthetic_leaves\.py ', '--per-class 5 --size 64'),
    Smaller(
        r'tools/train\.py random_drop_leaves\.py', '--cfg-options ' + ONE_EPOCH
    ),
    # the file that the rest of the page speaks of
    Smaller(r'export\.py \S+ \S+$', '--out model.onnx'),
    Smaller(r'export\.py .* --format pt2$', '--out model.pt2'),
    # a point for each of the few images that there are
    Smaller(r'vis_tsne\.py', '--perplexity 3 --n-iter 250'),
    Smaller(r'vis_cka\.py', '--batch-size 8 --num-images 16'),
    Smaller(r'data_pipeline\.py', '--epochs 1'),
]


class NotRun(NamedTuple):
    """Commands that are not run here, and why."""

    command: str
    reason: str


NOT_RUN = [
    NotRun(
        r'^python -m mmclca ', 'tests/test_fitting and test_cli/test_verbs'
    ),
    NotRun(r'^pip ', 'installs packages: its extras are looked up'),
    NotRun(r'^make ', 'CI itself runs it: its target is looked up'),
    NotRun(r'^mim ', 'test_package/test_wheel.py runs mim'),
    NotRun(r'^(git|ssh) ', 'needs a network'),
    NotRun(r'^(ba)?sh ', 'a GPU, a cluster or test_distributed.py: syntax'),
    NotRun(r'^(python -m )?pytest ', 'tests are run by CI itself'),
    NotRun(r'tools/demo\.py', 'test_tools/test_demo.py runs it'),
    NotRun(r'demo/app\.py', 'serves until it is stopped; tests/test_page'),
    NotRun(r'tools/dev/', 'writes into the checkout; has tests of its own'),
    NotRun(r'ultra_fgvc\.py download', 'needs a network'),
    NotRun(r'--executor slurm', 'needs a cluster'),
    NotRun(
        r'configs/sweeps/(\w+\.py$|'
        r'(leaf40|few_photographs|family|architectures)\w*\.py --jobs)',
        'hundreds of trainings; docs/sweeps.md runs a small grid',
    ),
    NotRun(
        r'(family|architectures)_from_scratch/\S+seed1|synthetic_leaves_16 |'
        r'work_dirs/queries',
        'the runs and the data that a page was measured with',
    ),
    NotRun(r'drawn_cotton80', 'the data that a page was measured with'),
    NotRun(
        r'tools/benchmark/(throughput|growth|onnx_runtime|epoch_time|'
        r'few_photographs|from_scratch)\.py',
        'a benchmark of minutes, or of a GPU',
    ),
]


def with_names(words):
    """Words of a command with files of the sandbox for the reader's."""
    names = '|'.join(map(re.escape, NAMES))
    pattern = re.compile(rf'(?<![\w./])({names})(?![\w.])')
    return [pattern.sub(lambda match: NAMES[match[1]], word) for word in words]


def made_small(words):
    """Words of a command with what makes it small enough to run."""
    line = ' '.join(words)
    for pattern, old, new in INSTEAD:
        if re.search(pattern, line):
            words = [new if word == old else word for word in words]
    words = with_names(words)
    line = ' '.join(words)
    for smaller in SMALLER:
        if re.search(smaller.command, line):
            words = words + shlex.split(smaller.more)
    return words


def reason_not_to_run(words):
    """Why a command is not run here, or None if it is."""
    line = ' '.join(words)
    for rule in NOT_RUN:
        if re.search(rule.command, line):
            return rule.reason
    return None
