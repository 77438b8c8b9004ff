# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Comparison of speed, cost and memory with plain ViTs, in long tables."""
