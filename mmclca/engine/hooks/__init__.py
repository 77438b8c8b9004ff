# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from .class_count_hook import ClassCountHook

__all__ = ['ClassCountHook']
