# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""A run of a sweep: base configs, changed settings, and a variant."""

from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path

from mmengine.config import Config

from mmclca.configs import require_settings
from mmclca.datasets.pipelines import set_image_size
from mmclca.errors import Error
from mmclca.models import Variant

from .base_configs import DATASETS, MODELS, RECIPES, RUNTIME, find, merge

# no CLCA, aggregation head (CLA), cache (CLC), both
ABLATIONS = ('base', 'cla', 'clc', 'clca')
NONE = 'none'  # method name for the full ViT
RECIPE = 'clca_50e'
ACCURACY = ('Accuracy', 'mmpretrain.Accuracy')
NEEDED = (
    'model.backbone',
    'model.head',
    'model.data_preprocessor',
    'num_classes',
    'train_dataloader.dataset',
    'test_dataloader.dataset',
    'test_evaluator',
    'test_cfg',
    'train_cfg',
    'optim_wrapper',
)


@dataclass(frozen=True)
class RunKey:
    """Place of a run in the grid of a sweep.

    Args:
        dataset (str): Name of a dataset config.
        backbone (str): Name of a model config.
        method (str): Reducer, or ``NONE`` for the full ViT.
        keep_rate (float): Keep rate.
        size (int): Image size in pixels.
        clca (str): CLCA parts, one of ``ABLATIONS``.
        seed (int): Random seed.
        variant (str): Label that distinguishes runs with other options.
            Defaults to ''.
    """

    dataset: str
    backbone: str
    method: str
    keep_rate: float
    size: int
    clca: str
    seed: int
    variant: str = ''

    @property
    def name(self) -> str:
        """Unique name for the result file and folder."""
        parts = (
            f'{self.dataset}-{self.size}px',
            self.backbone,
            f'{self.method.lower()}-kr{100 * self.keep_rate:g}',
            self.clca,
            self.variant,
            f'seed{self.seed}',
        )
        return '_'.join(filter(None, parts))


@dataclass(frozen=True)
class Run:
    """One run of a sweep.

    Args:
        key (RunKey): Its place in the grid.
        bases (tuple[Path, ...]): Base configs: runtime, schedule, dataset and
            model.
        overrides (dict): Settings by dotted name, applied last.
        variant (Variant): Token reduction, image size and parts of CLCA.
    """

    key: RunKey
    bases: tuple[Path, ...]
    overrides: dict
    variant: Variant

    @classmethod
    def from_key(
        cls,
        key: RunKey,
        recipe: str = RECIPE,
        options: dict = {},
        weights: dict[str, str] = {},
        folders: tuple[Path, ...] = (),
    ) -> 'Run':
        """Find the base configs of a run.

        Args:
            key (RunKey): Its place in the grid.
            recipe (str): Name of a schedule. Defaults to ``RECIPE``.
            options (dict): Settings by dotted name. Defaults to {}.
            weights (dict[str, str]): Checkpoints by backbone name, which
                replace ``load_from``. Defaults to {}.
            folders (tuple[Path, ...]): Folders of users with base configs,
                which take precedence. Defaults to ().

        Raises:
            Error: If a base config is missing.
        """
        bases = (
            find(RUNTIME, 'default_runtime', folders),
            find(RECIPES, recipe, folders),
            find(DATASETS, key.dataset, folders),
            find(MODELS, key.backbone, folders),
        )
        overrides = dict(options)
        if key.backbone in weights:
            overrides = dict(load_from=weights[key.backbone]) | overrides
        variant = Variant(
            None if key.method == NONE else key.method,
            key.keep_rate,
            key.size,
            cache=key.clca in ('clc', 'clca'),
            cla=key.clca in ('cla', 'clca'),
        )
        return cls(key, bases, overrides, variant)

    def compose(self) -> Config:
        """Compose the complete config.

        Raises:
            Error: If a base config lacks a setting, or the variant or an
                override does not match it.
        """
        cfg = merge(self.bases)
        try:
            require_settings(cfg, *NEEDED)
            _check_metric(cfg.test_evaluator)
            self._apply(cfg)
        except Error as error:
            raise self._describe(error) from error
        try:
            # a copy, because merging removes `_delete_`
            cfg.merge_from_dict(deepcopy(self.overrides))
        except (AssertionError, KeyError, TypeError) as error:  # of mmengine
            raise self._describe(error) from error
        model = cfg.model
        mixes = (model.get('train_cfg') or {}).get('augments')
        # an overridden model, such as LoRAModel, may lack it
        if mixes or 'num_classes' in model.get('data_preprocessor', ()):
            model.data_preprocessor.num_classes = model.head.num_classes
        return cfg

    def _describe(self, error: Exception) -> Error:
        files = ', '.join(map(str, self.bases))
        return Error(
            f'{self.key.name}: {error} (options {self.overrides}, configs '
            f'{files})'
        )

    def _apply(self, cfg: Config) -> None:
        """Set the model, image size and seed of a config, in place.

        Gradients are logged, and validation is skipped: each run is tested
        once after training.
        """
        cfg.model.head.num_classes = cfg.num_classes
        cfg.model = self.variant.apply(cfg.model)
        for loader in (cfg.train_dataloader, cfg.test_dataloader):
            set_image_size(loader.dataset, self.key.size)
        seed = dict(seed=self.key.seed)
        cfg.randomness = dict(cfg.get('randomness') or {}) | seed
        hook = dict(type='mmclca.GradientStatsHook')
        cfg.custom_hooks = [*(cfg.get('custom_hooks') or []), hook]
        cfg.val_cfg = cfg.val_dataloader = cfg.val_evaluator = None


def _check_metric(evaluator: dict | list) -> None:
    """Raise if the test does not measure top-1 accuracy."""
    metrics = evaluator if isinstance(evaluator, list) else [evaluator]
    for metric in metrics:
        if metric.get('type') in ACCURACY:
            topk = metric.get('topk', 1)
            if 1 in (topk if isinstance(topk, list | tuple) else [topk]):
                return
    raise Error(
        'test_evaluator lacks top-1 accuracy: add '
        "dict(type='Accuracy', topk=(1,))"
    )
