# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Names that command lines offer.

They are known where they are used, in modules that import torch; they stand
here too, so that ``--help`` need not.
"""

import ast
from pathlib import Path

# of VisionTransformer in MMPretrain
ARCHS = (
    *('b', 'base', 'deit-b', 'deit-base', 'deit-s', 'deit-small', 'deit-t'),
    *('deit-tiny', 'dinov2-g', 'dinov2-giant', 'dinov2-s', 'dinov2-small'),
    *('eva-g', 'eva-giant', 'h', 'huge', 'l', 'large', 's', 'small'),
)


def _reducers() -> tuple[str, ...]:
    """The names in ``__all__`` of the reducers, whose package needs torch."""
    file = Path(__file__).parents[1] / 'models/reduction/reducers/__init__.py'
    (names,) = (
        ast.literal_eval(node.value)
        for node in ast.parse(file.read_text()).body
        if isinstance(node, ast.Assign)
    )
    return tuple(sorted(set(names) - {'TokenReducer'}))


METHODS = _reducers()
MMPRETRAIN, PLAIN = 'mmpretrain', 'none'
# of mmclca.benchmark.setting and .memory
AMP = ('bf16', 'fp16')
CUDA_GRAPHS = ('reduce-overhead', 'max-autotune')
# of mmclca.apis.probe.classifiers and of mmclca.models.head_variants
CLASSIFIERS = ('ridge', 'lda', 'logistic', 'ncm')
OUT_TYPES = ('cls_token', 'average', 'cls_average')
# of mmclca.evaluation.open_set
SCORES = ('max_softmax', 'energy')
# of mmclca.models.retrievers, and of mmclca.visualization.tsne
STAGES = ('backbone', 'pre_logits')
TSNE_STAGES = ('backbone', 'neck', 'pre_logits')
# of mmclca.visualization.cam and .cka
CAM_METHODS = (
    *('gradcam', 'gradcam++', 'xgradcam', 'layercam'),
    *('hirescam', 'eigencam', 'eigengradcam'),
)
FEATURES = ('cls', 'mean', 'all')
FEWEST = 4
# of mmclca.deployment.onnx_file
OLDEST_OPSET = 18
# of mmclca.datasets.ultra_fgvc
SETS = (
    *('cotton80', 'soylocal', 'soygene', 'soyageing'),
    *('soyageing_r1', 'soyageing_r3', 'soyageing_r4'),
    *('soyageing_r5', 'soyageing_r6', 'soyglobal'),
)
LAYOUTS = ('csv', 'folders', 'parquet', 'released')
