# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
__version__ = '0.1.0'
