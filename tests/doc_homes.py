# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Replacements and exclusions for the commands in the documentation.

Commands run as written, in a folder filled by ``doc_sandbox``, after the
replacements in ``NAMES`` and ``SMALLER``. Arguments of commands in ``NOT_RUN``
are only parsed.
"""

import re
import runpy
import shlex
import subprocess
import sys

from doc_pages import PROGRAMS
from tiny_run import ROOT

from mmclca.cli.verbs import command_named

WHAT_TO_DO = """
Fix the page or the tool. Where the command needs what a test cannot have, add
it to tests/doc_homes.py: NAMES for a word that stands for a file of the
reader's, SMALLER for options that make a training small, NOT_RUN, with the
reason, for what needs a GPU, a cluster, a network or minutes."""

# placeholders in commands, and their sandbox files
NAMES = {
    'CONFIG': 'tiny.py',
    'CHECKPOINT': 'best.pth',
    'CKPT': 'best.pth',
    'IMAGES': 'new_leaves',
    'WORK_DIR': 'run',
    'LOG.json': 'log.json',
    'FILE': 'deit_tiny_patch16_224.pth',
    'cuda': 'cpu',
    'infer_onnx.py': 'tools/deployment/infer_onnx.py',
}

GPU_ONLY = ('--memory', '--amp', 'fp16', 'bf16')
ELIDED = '...'  # marks omitted arguments
# exceptions to NAMES: command pattern, placeholder, file
INSTEAD = [
    (r'pipeline\.0\.transforms', 'CONFIG', 'cotton.py'),
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
# replacements in Python blocks
SMALLER_PYTHON = {
    '(2, 3, 224, 224)': '(2, 3, 32, 32)',
    'range(22)': 'range(3)',
    'photos_of_larch/': 'data/new_leaves',
    "fit('photos/')": "fit('data/my_leaves', probe_only=True, "
    "runtime='pytorch', weights='deit_tiny_patch16_224.pth')",
}

SMALLER = [  # command pattern, additional options
    # DeiT-Ti, one epoch at 64 px, with local weights
    (
        r'tools/train\.py .*_(custom|leaf40)-224px\.py',
        '--cfg-options ' + SMALL_IMAGES,
    ),
    # released weights are not in the sandbox
    (
        r'tools/train\.py configs/(deit3?|cait|patchconvnet|resmlp)/',
        'load_from=None',
    ),
    (r'synthetic_leaves\.py ', '--per-class 5 --size 64'),
    (r'tools/train\.py random_drop_leaves\.py', '--cfg-options ' + ONE_EPOCH),
    # the file used in the rest of the page
    (r'export\.py \S+ \S+$', '--out model.onnx'),
    (r'export\.py .* --format pt2$', '--out model.pt2'),
    # few images
    (r'vis_tsne\.py', '--perplexity 3 --n-iter 250'),
    (r'vis_cka\.py', '--batch-size 8 --num-images 16'),
]

NOT_RUN = [  # command pattern, reason
    (r'export\.py .*reducer\.target=None', 'needs counts that are learned'),
    (r'^python -m mmclca ', 'tests/test_fitting and tests/test_cli'),
    (r'^pip ', 'installs packages: its extras are looked up'),
    (r'^make ', 'CI itself runs it: its target is looked up'),
    (r'^mim ', 'test_package/test_wheel.py runs mim'),
    (r'^(git|ssh) ', 'needs a network'),
    (r'^(ba)?sh ', 'a GPU, a cluster or test_distributed.py: syntax'),
    (r'^(python -m )?pytest ', 'tests are run by CI itself'),
    (r'tools/demo\.py', 'test_tools/test_demo.py runs it'),
    (r'demo/app\.py', 'serves until it is stopped; tests/test_page'),
    (r'tools/dev/', 'writes into the checkout; has tests of its own'),
    (r'tools/research/pages', 'the same; tests/test_research'),
    (r'tools/research/(ats_batches|benchmarks)', 'tests/test_research'),
    (r'ultra_fgvc\.py download', 'needs a network'),
    (r'--executor slurm', 'needs a cluster'),
    (
        r'configs/sweeps/(\w+\.py$|'
        r'(leaf40|few_photographs|family|architectures|baselines|pretraining)'
        r'\w*\.py --jobs)',
        'hundreds of trainings; docs/sweeps.md runs a small grid',
    ),
    (
        r'(family|architectures)_from_scratch/\S+seed1|synthetic_leaves_16 |'
        r'work_dirs/(queries|pretraining)',
        'the runs and the data that a page was measured with',
    ),
    (
        r'configs/grafit/|synthetic_species|work_dirs/ce/',
        'hours of training; tests/test_models/test_selfsup',
    ),
    (
        r'_leaves-112px\.py|-40e_synthetic-leaves-|PartialInit|'
        r'vis_reconstruction',
        'test_tools/test_pretraining_script.py, test_models/test_selfsup',
    ),
    (r'drawn_cotton80', 'the data that a page was measured with'),
    (r'tools/benchmark/throughput\.py', 'a benchmark of minutes, or of a GPU'),
]


def with_names(words):
    """Replace user file names in a command by sandbox files."""
    names = '|'.join(map(re.escape, NAMES))
    pattern = re.compile(rf'(?<![\w./])({names})(?![\w.])')
    return [pattern.sub(lambda match: NAMES[match[1]], word) for word in words]


def made_small(words):
    """Add options that shorten a command."""
    line = ' '.join(words)
    for pattern, old, new in INSTEAD:
        if re.search(pattern, line):
            words = [new if word == old else word for word in words]
    words = with_names(words)
    line = ' '.join(words)
    for pattern, more in SMALLER:
        if re.search(pattern, line):
            words = words + shlex.split(more)
    return words


def reason_not_to_run(words):
    """Return the reason for not running a command, or None."""
    line = ' '.join(words)
    for pattern, reason in NOT_RUN:
        if re.search(pattern, line):
            return reason
    return None


def check_command(words, patch):
    """Check files and arguments of a command without running it."""
    assert words[0] in PROGRAMS, f'{words[0]} is not in PROGRAMS'
    for word in words:
        path = re.fullmatch(r'(?:configs|tools|tests)/[\w./-]+', word)
        assert not path or (ROOT / word).exists(), f'there is no {word}'
    if 'cuda' in words:  # options that need a GPU
        words = [word for word in words if word not in GPU_ONLY]
    if words[0] in CHECKS:
        CHECKS[words[0]](with_names(words[1:]), patch)


def _python(words, patch):
    if words[:2] == ['-m', 'mmclca']:
        _command(words[2].replace('-', '_'), words[2:], patch)
        return
    if words[0] == '-m':
        assert words[1] == 'pytest', f'python -m {words[1]} is not looked at'
        return
    assert (ROOT / words[0]).is_file(), f'there is no {words[0]}'
    stub = re.search(r"run_command\('(\w+)'\)", (ROOT / words[0]).read_text())
    if ELIDED in words:
        return
    if stub:
        _command(stub[1], words, patch)
    elif parse := runpy.run_path(str(ROOT / words[0])).get('parse_args'):
        patch.setattr(sys, 'argv', words)
        parse()


def _command(name, words, patch):
    """Parse the arguments of a command."""
    patch.setattr(sys, 'argv', words)
    command_named(name).parse_args()


def _pip(words, patch):
    """Check that the extras exist."""
    assert words[0] in ('install', 'uninstall'), f'pip {words[0]}'
    text = (ROOT / 'pyproject.toml').read_text()
    for extra in re.findall(r'\[([\w,]+)\]', ' '.join(words)):
        for name in extra.split(','):
            assert re.search(rf'^{name} = \[', text, re.M), f'no extra {name}'


def _make(words, patch):
    text = (ROOT / 'Makefile').read_text()
    for target in words:
        if '=' not in target:
            assert re.search(rf'^{target}:', text, re.M), f'no make {target}'


def _script(words, patch):
    subprocess.run(['bash', '-n', ROOT / words[0]], check=True)


def _mim(words, patch):
    verb, package = words[:2]
    assert verb in ('train', 'test', 'run', 'search', 'gridsearch', 'install')
    if verb == 'run' and words[2] not in ('NAME', ELIDED):
        assert list((ROOT / 'tools').rglob(f'{words[2]}.*')), words[2]


CHECKS = dict(
    python=_python, pip=_pip, make=_make, bash=_script, sh=_script, mim=_mim
)
