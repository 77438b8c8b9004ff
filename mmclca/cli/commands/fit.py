# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""What ``mmclca fit`` does."""

from mmclca.fitting import fit

from .. import plain_errors


def main(args):
    with plain_errors():
        fit(
            args.photographs,
            args.out,
            budget=args.budget,
            weights=args.weights,
            labels=args.labels,
            groups=args.groups,
            folds=args.folds,
            probe_only=args.probe_only,
            class_weights=args.class_weights,
            overwrite=args.overwrite,
            pixels=args.pixels,
            device=args.device,
        )
