# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""mmclca changes no global state of a process that imports and uses it."""

import json

import pytest
from tiny_photos import write_photos, write_weights
from tiny_run import run_python

# half a minute: imports everything in a process of its own
pytestmark = pytest.mark.slow

# imports all packages, which change global state themselves, before the
# first snapshot
HOST = """
import importlib, json, logging, os, pkgutil, signal, sys, warnings
from importlib.util import find_spec

import cv2, matplotlib.pyplot, mmpretrain.apis, pandas, PIL.Image, rich
import safetensors.torch, scipy.stats, sklearn.linear_model, sklearn.manifold
import submitit, timm, torch
from mmengine.fileio.backends import registry_utils
from mmengine.logging import MMLogger
from mmengine.runner.checkpoint import CheckpointLoader

for name in ('gradio', 'onnx', 'onnxruntime', 'pi_heif', 'pooch'):
    if find_spec(name):
        importlib.import_module(name)

MMLogger.get_instance('host', logger_name='host')


def named(functions):
    return {k: f'{v.__module__}.{v.__qualname__}' for k, v in functions}


def handlers():
    loggers = {'root': logging.root, **MMLogger._instance_dict}
    return {k: [*map(id, logger.handlers)] for k, logger in loggers.items()}


def state():
    schemes = named(CheckpointLoader._schemes.items())
    for name in ('timm://', r'.*\\.safetensors$'):
        schemes.pop(name, None)  # a new name replaces nothing
    prefixes = registry_utils.prefix_to_backends.items()
    return dict(
        checkpoint_loaders=schemes,
        environment=dict(os.environ),
        excepthook=id(sys.excepthook),
        file_backends=named(registry_utils.backends.items()),
        file_prefixes={k: str(v) for k, v in prefixes},
        float_type=str(torch.get_default_dtype()),
        interrupt=str(signal.getsignal(signal.SIGINT)),
        log_handlers=handlers(),
        matplotlib=dict.__getitem__(matplotlib.rcParams, 'backend'),
        pillow_limit=PIL.Image.MAX_IMAGE_PIXELS,
        safe_globals=sorted(map(str, torch.serialization.get_safe_globals())),
        streams=[id(sys.stdout), id(sys.stderr)],
        threads=torch.get_num_threads(),
        warning_filters=[*map(str, warnings.filters)],
    )


def functions():
    # functions and methods of the libraries that mmclca extends
    result = {}
    for module in [*sys.modules]:
        if module.split('.')[0] in ('mmcv', 'mmengine', 'mmpretrain', 'timm'):
            for name, part in vars(sys.modules[module]).items():
                if callable(part):
                    result[f'{module}.{name}'] = part
                if isinstance(part, type):
                    methods = vars(part).items()
                    result |= {f'{module}.{name}.{k}': v for k, v in methods
                               if callable(v) or isinstance(v, property)}
    return result


def changes(before):
    after, now = state(), functions()
    before = dict(before, replaced=[])
    after['replaced'] = [k for k in library if now.get(k) is not library[k]]
    for name in ('log_handlers', 'file_backends'):  # new names are fine
        after[name] = {k: after[name].get(k) for k in before[name]}
    return {k: f'{before[k]} -> {after[k]}' for k in before
            if after[k] != before[k]}


before, library, found = state(), functions(), {}
import mmclca
skipped = ('__main__',) if find_spec('gradio') else ('__main__', 'page')
for module in pkgutil.walk_packages(mmclca.__path__, 'mmclca.'):
    if not {*skipped} & {*module.name.split('.')}:
        importlib.import_module(module.name)
found['import'] = changes(before)

from mmclca.checkpoints.opening import open_checkpoint
from mmclca.datasets.decoding import read_bgr
weights, image, photos = sys.argv[1:]
open_checkpoint(weights)
read_bgr(image)
found['use'] = changes(before)

mmclca.fit(photos, 'model', weights=weights, probe_only=True)
found['fit'] = changes(before)
print('\\n' + json.dumps(found))
"""


@pytest.fixture(scope='module')
def changed(tmp_path_factory):
    folder = tmp_path_factory.mktemp('host')
    photos, weights = write_photos(folder), write_weights(folder)
    image = photos / 'ash/0.png'
    run = run_python('-c', HOST, weights, image, photos, cwd=folder)
    return json.loads(run.stdout.splitlines()[-1])


@pytest.mark.parametrize('job', ['import', 'use', 'fit'])
def test_global_state_is_unchanged(changed, job):
    assert changed[job] == {}
