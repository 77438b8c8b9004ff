# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from .atomic_checkpoint_hook import AtomicCheckpointHook
from .bank_hook import BankHook
from .check_invalid_loss_hook import CheckInvalidLossHook
from .class_count_hook import ClassCountHook
from .compile_hook import CompileHook
from .complete_weights_hook import CompleteWeightsHook
from .drawing_hooks import ReconstructionHook, TokenVisualizationHook
from .exact_resume_hook import ExactResumeHook
from .gradient_stats_hook import EpochMaximaHook, GradientStatsHook
from .keep_rate_schedule_hook import KeepRateScheduleHook
from .probe_init_hook import ProbeInitHook
from .progress_hook import ProgressHook
from .tuning_hooks import SaveTrainableHook, TuningScopeHook

__all__ = [
    'AtomicCheckpointHook',
    'BankHook',
    'CheckInvalidLossHook',
    'ClassCountHook',
    'CompileHook',
    'CompleteWeightsHook',
    'EpochMaximaHook',
    'ExactResumeHook',
    'GradientStatsHook',
    'KeepRateScheduleHook',
    'ProbeInitHook',
    'ProgressHook',
    'ReconstructionHook',
    'SaveTrainableHook',
    'TokenVisualizationHook',
    'TuningScopeHook',
]
