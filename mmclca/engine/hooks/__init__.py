# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from .atomic_checkpoint_hook import AtomicCheckpointHook
from .bank_hook import BankHook
from .class_count_hook import ClassCountHook
from .compile_hook import CompileHook
from .drawing_hooks import ReconstructionHook, TokenVisualizationHook
from .exact_resume_hook import ExactResumeHook
from .finite_hook import FiniteHook
from .gradient_stats_hook import EpochMaximaHook, GradientStatsHook
from .keep_rate_warm_up_hook import KeepRateWarmUpHook
from .probe_init_hook import ProbeInitHook
from .progress_hook import ProgressHook
from .tuning_hooks import SaveTrainableHook, TuningScopeHook

__all__ = [
    'AtomicCheckpointHook',
    'BankHook',
    'ClassCountHook',
    'CompileHook',
    'EpochMaximaHook',
    'ExactResumeHook',
    'FiniteHook',
    'GradientStatsHook',
    'KeepRateWarmUpHook',
    'ProbeInitHook',
    'ProgressHook',
    'ReconstructionHook',
    'SaveTrainableHook',
    'TokenVisualizationHook',
    'TuningScopeHook',
]
