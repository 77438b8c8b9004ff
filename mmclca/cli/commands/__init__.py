# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""What each tool does once its command line is read.

A file of ``tools`` reads the command line and imports nothing heavy; the
module of its name here does the work.
"""
