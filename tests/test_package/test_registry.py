# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Types of mmclca in mmpretrain's configs, with nothing imported by hand."""

import pytest
from mmpretrain import registry as mmpretrain
from tiny_run import CLASSES, run_python, write_run

from mmclca import registry

BUILDS = {
    'Runner': """
from mmengine.config import Config
from mmengine.runner import Runner
cfg = Config.fromfile('tiny.py')
cfg.work_dir = 'work'
model = Runner.from_cfg(cfg).model
""",
    'get_model': """
from mmpretrain import get_model
model = get_model('tiny.py')
""",
    'inferencer': f"""
from mmpretrain import ImageClassificationInferencer
inferencer = ImageClassificationInferencer(
    'tiny.py', pretrained=False, classes={CLASSES!r}
)
result, = inferencer('data/oak/0.png', show=False)
assert result['pred_class'] in {CLASSES!r}
model = inferencer.model
""",
}

SHOW = """
print()  # after the progress bar of the inferencer
print(type(model.backbone).__module__, type(model.backbone.reducer).__name__)
"""


@pytest.mark.parametrize('build', BUILDS.values(), ids=BUILDS.keys())
def test_mmpretrain_config_builds(build, tmp_path):
    write_run(tmp_path)
    lines = run_python('-c', build + SHOW, cwd=tmp_path).stdout.splitlines()
    assert lines[-1] == 'mmclca.models.backbones.token_reduction_vit TopK'


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
