# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""What ``mmclca add-class`` does."""

from mmclca.fitting import FittedModel

from .. import plain_errors


def main(args):
    with plain_errors():
        model = FittedModel(args.folder, args.device)
        model.add_class(args.photographs, args.name)
