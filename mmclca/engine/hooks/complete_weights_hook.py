# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from mmengine.hooks import Hook
from mmengine.runner import BaseLoop, Runner

from mmclca.checkpoints.load import load
from mmclca.registry import HOOKS
from mmclca.utils.wrappers import inner_model


@HOOKS.register_module()
class CompleteWeightsHook(Hook):
    """Stop a test before the first image if the checkpoint is incomplete.

    A tested checkpoint must have all parameters of the model: MMEngine only
    logs missing ones, and would test a randomly initialized head. A training
    may start with a new head, and only logs its parameters.
    """

    priority = 'HIGHEST'  # before weights of another shape are refused

    def after_load_checkpoint(self, runner: Runner, checkpoint: dict) -> None:
        """Load the weights; raise an Error if a tested model lacks some.

        ``checkpoint`` gets the weights of the model, which the runner loads
        again.
        """
        # the property would build an unused loop
        if isinstance(runner._train_loop, BaseLoop):
            return
        model = inner_model(runner.model)
        load(model, checkpoint)
        checkpoint['state_dict'] = model.state_dict()
