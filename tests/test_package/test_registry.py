# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""mmclca types in mmpretrain configs without custom imports."""

import pytest
from mmpretrain import registry as mmpretrain
from tiny_run import CLASSES, ROOT, run_python, write_run

from mmclca import registry

# code without an import of mmclca
BUILDS = {
    'runner': """
from mmengine.config import Config
from mmengine.runner import Runner
cfg = Config.fromfile('tiny.py')
cfg.work_dir = 'work'
model = Runner.from_cfg(cfg).model
""",
    'get_model': """
model = mmpretrain.get_model('tiny.py')
""",
    'inferencer': f"""
inferencer = mmpretrain.ImageClassificationInferencer(
    'tiny.py', pretrained=False, classes={CLASSES!r}
)
result, = inferencer('data/oak/0.png', show=False)
assert result['pred_class'] in {CLASSES!r}
model = inferencer.model
""",
}
SHOW = """
assert type(model.backbone.reducer).__name__ == 'TopK'
module = type(model.backbone).__module__
assert module == 'mmclca.models.backbones.token_reduction_vit'
"""
NAMES = """
import mmclca.models
print(*mmpretrain.list_models('*clca*'), file=open('names.txt', 'w'))
"""
# each in a fork of a process with mmpretrain imported
FORKS = """
import os, sys
import mmengine.runner, mmpretrain.datasets, mmpretrain.models
assert 'mmclca' not in sys.modules
for code in sys.argv[1:]:
    child = os.fork()
    if not child:
        exec(code)
        sys.stdout.flush()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0, code
"""


@pytest.mark.slow
def test_mmpretrain_finds_types_and_names(tmp_path):
    """Check runner, models, inferencer and model list."""
    write_run(tmp_path)
    builds = [build + SHOW for build in BUILDS.values()]
    run_python('-c', FORKS, *builds, NAMES, cwd=tmp_path)
    names = (tmp_path / 'names.txt').read_text().split()
    folders = ('clca', 'deit', 'deit3', 'mae_lite', 'parallel')
    found = (ROOT.glob(f'configs/{name}/*clca*.py') for name in folders)
    assert names == sorted(path.stem for paths in found for path in paths)


@pytest.mark.parametrize('name', ['MODELS', 'DATASETS', 'DATA_SAMPLERS'])
def test_registries_are_children_of_mmpretrains(name):
    child = getattr(registry, name)
    assert child.parent is getattr(mmpretrain, name)
    assert child.scope == 'mmclca'
    assert getattr(mmpretrain, name).children['mmclca'] is child


def test_mmpretrain_types_are_found_from_mmclca():
    assert registry.MODELS.get('LinearClsHead') is mmpretrain.MODELS.get(
        'LinearClsHead'
    )


def test_types_of_mmclca_need_their_prefix_in_mmpretrain():
    assert registry.MODELS.get('TopK') is mmpretrain.MODELS.get('mmclca.TopK')
    assert mmpretrain.MODELS.get('TopK') is None
