# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Colors that color-blind readers tell apart (Okabe and Ito)."""

ORANGE, SKY, GREEN, INK = '#D55E00', '#56B4E9', '#009E73', '#333333'
BLUE, YELLOW, PURPLE = '#0072B2', '#E69F00', '#CC79A7'
