# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Commands that draw a trained model: one module with ``add_arguments`` and
``draw`` per command; ``draw`` returns the path of the picture.
"""
