# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""MMPretrain's own tools load releases as ``load`` does, or stop."""

import pickle
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import mmcv
import mmpretrain
import pytest
import torch
from mmengine.config import Config
from timm.models.vision_transformer import VisionTransformer
from tiny_run import environment, write_run

from mmclca.checkpoints.load import load
from mmclca.registry import MODELS

pytestmark = pytest.mark.slow
TOOLS = Path(mmpretrain.__file__).parent / '.mim/tools'
# a training that changes nothing, of a model without random CLR positions
SETTINGS = """
model['backbone'].pop('cache')
optim_wrapper['optimizer']['lr'] = 0.0
train_cfg['max_epochs'] = 1
loader.update(num_workers=1)
custom_hooks = [dict(type='mmclca.ClassCountHook')]
"""


@pytest.fixture
def run(tmp_path):
    """Function that runs MMPretrain's tools on the tiny config."""
    config = write_run(tmp_path)
    config.write_text(config.read_text() + SETTINGS)

    def run(*command):
        return subprocess.run(
            [sys.executable, *map(str, command)],
            cwd=tmp_path,
            env=environment(),
            text=True,
            capture_output=True,
        )

    return run


def write_release(folder, **options):
    """Write weights as in DeiT's files for the tiny config."""
    sizes = dict(embed_dim=24, depth=3, num_classes=4) | options
    model = VisionTransformer(
        img_size=32, patch_size=8, num_heads=2, mlp_ratio=2, **sizes
    )
    contents = dict(model=model.state_dict(), epoch=300)
    torch.save(contents, folder / 'release.pth')


def build_by_load(folder):
    """Build the config's model, with the weights of the file."""
    cfg = Config.fromfile(folder / 'tiny.py')
    preprocessor = dict(cfg.data_preprocessor, type='ClsDataPreprocessor')
    model = MODELS.build(dict(cfg.model, data_preprocessor=preprocessor))
    load(model, folder / 'release.pth')
    return model.eval()


@pytest.mark.parametrize(
    'command, head',
    [
        pytest.param(
            ('-m', 'mim', 'train', 'mmpretrain'),
            'LinearClsHead',
            marks=pytest.mark.skipif(
                not find_spec('mim'), reason='needs mim: extra mim'
            ),
        ),
        ((TOOLS / 'train.py',), 'VisionTransformerClsHead'),
    ],
)
def test_training_starts_from_a_release(command, head, run, tmp_path):
    config = tmp_path / 'tiny.py'
    config.write_text(config.read_text().replace('LinearClsHead', head))
    write_release(tmp_path)
    gpus = ('--gpus', 0) if 'mim' in command else ()
    start = '--cfg-options', 'load_from=release.pth'
    ended = run(*command, config, *gpus, *start)
    assert ended.returncode == 0, ended.stderr
    assert 'do not match exactly' not in ended.stdout + ended.stderr
    path = tmp_path / 'work_dirs/tiny/epoch_1.pth'
    trained = torch.load(path, weights_only=False)['state_dict']
    expected = build_by_load(tmp_path).state_dict()
    assert trained.keys() == expected.keys()
    for name, value in expected.items():
        assert torch.equal(trained[name], value), name


@torch.no_grad()
@pytest.mark.parametrize(
    'kind', ['ImageClassifier', 'mmclca.TokenReductionClassifier']
)
def test_test_gives_the_scores_of_load(kind, run, tmp_path):
    config = tmp_path / 'tiny.py'
    config.write_text(config.read_text().replace('ImageClassifier', kind))
    write_release(tmp_path)
    scores = tmp_path / 'scores.pkl'
    out = '--out', scores, '--out-item', 'pred'
    ended = run(TOOLS / 'test.py', 'tiny.py', 'release.pth', *out)
    assert ended.returncode == 0, ended.stderr
    model = build_by_load(tmp_path)
    samples = pickle.loads(scores.read_bytes())
    assert len(samples) == 16
    for sample in samples:
        image = torch.from_numpy(mmcv.imread(sample['img_path']))
        packed = dict(inputs=[image.permute(2, 0, 1)], data_samples=None)
        (expected,) = model.head.predict(
            model.extract_feat(model.data_preprocessor(packed)['inputs'])
        )
        torch.testing.assert_close(
            sample['pred_score'], expected.pred_score, atol=1e-6, rtol=0
        )


@pytest.mark.parametrize(
    'tool, options, words',
    [
        ('train', dict(depth=2), 'does not match TokenReductionViT'),
        ('test', dict(embed_dim=16), 'does not match TokenReductionViT'),
        ('test', dict(num_classes=0), 'head.fc.weight'),
    ],
)
def test_other_weights_stop_the_tool(tool, options, words, run, tmp_path):
    write_release(tmp_path, **options)
    file = ['release.pth']
    if tool == 'train':
        file = ['--cfg-options', 'load_from=release.pth']
    ended = run(TOOLS / f'{tool}.py', 'tiny.py', *file)
    last = ended.stderr.strip().splitlines()[-1]
    assert ended.returncode == 1
    assert last.startswith('mmclca.') and words in last
