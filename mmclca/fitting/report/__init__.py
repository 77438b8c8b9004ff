# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from .render import write_report

__all__ = ['write_report']
