# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Survey of new photos: accuracy and class counts from a few labels."""

from .drawing import DrawnSurvey, draw_survey
from .estimate import Estimated, Survey, SurveyEstimate, estimate_survey
from .measuring import ClassCount, MeasuredSurvey, measure_survey
from .refit import refit
from .sampling import draw_sample, stratify

__all__ = [
    'ClassCount',
    'DrawnSurvey',
    'Estimated',
    'MeasuredSurvey',
    'Survey',
    'SurveyEstimate',
    'draw_sample',
    'draw_survey',
    'estimate_survey',
    'measure_survey',
    'refit',
    'stratify',
]
