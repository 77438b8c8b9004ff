# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Run Python blocks on documentation pages, and check config settings."""

import importlib.util
import inspect
import re
import sys
from pathlib import Path

import mmpretrain.registry
import torch
from doc_homes import SMALLER_PYTHON
from mmengine.config import Config
from mmengine.registry import Registry
from tiny_run import ROOT

from mmclca.registry import MODELS
from mmclca.sweep.grid import read_grid

REGISTRIES = [
    registry
    for registry in vars(mmpretrain.registry).values()
    if isinstance(registry, Registry)
]
MMPRETRAIN = Path(mmpretrain.__file__).parent / '.mim/configs'
A_CONFIG = 'clca-evit-kr25_deit-tiny-p16_1xb32-50e_leaf40-224px.py'


def names_of_the_reader(folder):
    """Return the names that blocks assume: model, images, base config."""
    model = mmpretrain.get_model(
        str(folder / 'tiny.py'), str(folder / 'best.pth'), device='cpu'
    ).eval()
    images = torch.randn(2, 3, 32, 32)
    return dict(
        mmpretrain=mmpretrain,
        torch=torch,
        model=model,
        backbone=model.backbone,
        images=images,
        batch=images[:1],
        rgb=torch.zeros(32, 32, 3, dtype=torch.uint8).numpy(),
        resize=dict(type='Resize', scale=(64, 64)),
        CONFIG=str(folder / 'tiny.py'),
        CHECKPOINT=str(folder / 'best.pth'),
        _base_=Config.fromfile(ROOT / 'configs/clca' / A_CONFIG),
    )


def run_python(block, known, folder):
    """Run a block, check its config settings, and update known names."""
    if re.search(r'^_base_ = ', block.text, re.M):
        settings = _as_config(block, folder)
    else:
        settings = _executed(block, known)
    if {'datasets', 'blocks'} & settings.keys():
        with (folder / 'of_the_page.py').open('a') as file:
            file.write(block.text)
        assert read_grid(folder / 'of_the_page.py').cells
    check_types(settings, block.place)
    model = settings.get('model')
    if isinstance(model, dict) and 'arch' in model.get('backbone', {}):
        with torch.device('meta'):
            MODELS.build(model)


def _as_config(block, folder):
    """Read a block as config, with base configs from the checkout."""
    folders = ROOT / 'configs', MMPRETRAIN
    found = {p.name: p for folder in folders for p in folder.rglob('*.py')}
    text = re.sub(
        r"'(?:[\w./]+/)?([\w.-]+\.py)'",
        lambda m: repr(str(found.get(m[1], m[0]))),
        block.text,
    )
    path = folder / 'random_drop_leaves.py'  # as docs/add_a_reducer.md says
    path.write_text(text)
    return Config.fromfile(path, import_custom_modules=False).to_dict()


def smaller(text):
    """Apply the replacements that shorten a block."""
    for old, new in SMALLER_PYTHON.items():
        text = text.replace(old, new)
    return text


def _import(text):
    """Write a class as user module, such as random_drop.py, and import it."""
    name = re.search(r'^class (\w+)', text, re.M)[1]
    module = re.sub(r'(?<!^)(?=[A-Z])', '_', name).lower()
    path = Path(f'{module}.py')
    path.write_text(text)
    spec = importlib.util.spec_from_file_location(module, path)
    sys.modules[module] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(sys.modules[module])


def _executed(block, known):
    """Execute a block; return the names or keyword arguments it sets."""
    if '.register_module(' in block.text:
        _import(block.text)
        return {}
    try:
        code = compile(smaller(block.text), block.place, 'exec')
    except SyntaxError:  # reducer=dict(...), reduce_at=(3, 6, 9)
        return eval(f'dict({block.text})', dict(known))
    after = dict(known)
    exec(code, after)
    new = {k: v for k, v in after.items() if v is not known.get(k)}
    if 'import ' in block.text:  # the next block may use its names
        known.update(new)
    return new


def check_types(settings, place):
    """Check that each ``type`` exists and accepts its arguments."""
    if isinstance(settings, (list, tuple)):
        for part in settings:
            check_types(part, place)
    if not isinstance(settings, dict):
        return
    name = settings.get('type')
    if isinstance(name, str) and name[0] != '.':  # LoRA: an expression
        found = [r.get(name) for r in REGISTRIES if r.get(name)]
        assert found, f'{place}: no {name} in any registry'
        others = {'type', '_delete_', '_scope_', 'convert_to_iter_based'}
        names = settings.keys() - others
        inspect.signature(found[0]).bind_partial(**dict.fromkeys(names))
    for part in settings.values():
        check_types(part, place)
