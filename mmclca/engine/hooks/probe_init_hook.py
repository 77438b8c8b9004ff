# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import torch
from mmengine.hooks import Hook
from torch import Tensor
from torch.optim.swa_utils import update_bn

from mmclca.apis.probe import ClassifierSettings, FoldSettings, LabeledFeatures
from mmclca.apis.probe.folds import fit_chosen
from mmclca.datasets.batches import batches, build_dataset, without_cache
from mmclca.models import last_linear, set_last_linear
from mmclca.registry import HOOKS
from mmclca.utils.random_state import preserve_random_state
from mmclca.utils.wrappers import inner_model


def last_view(pipeline: list[dict]) -> list[dict]:
    """Replace each ``TestTimeAug`` in a pipeline by its last view."""
    steps = []
    for step in pipeline:
        several = step['type'] == 'TestTimeAug'
        choices = step['transforms'] if several else [[step]]
        steps += [choice[-1] for choice in choices]
    return steps


@HOOKS.register_module()
class ProbeInitHook(Hook):
    """Initialize the head with a linear probe on frozen features.

    Before the first iteration, the model computes features for all training
    images with the test pipeline, and a linear classifier on these features
    becomes the last layer of the head. Cross-validation selects its
    regularization strength and temperature. BatchNorm in the head, as in
    ``CLAHead``, is first updated with the training images. A resumed run
    skips the initialization. Random numbers for training stay the same. If
    the test pipeline averages several views, the last view is used.

    Args:
        classifier (str): 'ridge' or 'logistic', see
            :func:`mmclca.apis.probe.fit_linear`. Defaults to 'ridge'.
        folds (int): Number of cross-validation folds. Defaults to 5.
        class_weights (str, optional): 'balanced' to give all classes the
            same weight, regardless of their size. Defaults to None.
        batch_size (int): Images per batch. Defaults to 32.

    Raises:
        Error: If the classifier or class weights are unknown, or the head
            does not end in a linear layer.
    """

    priority = 'VERY_HIGH'  # run before hooks that copy the model, such as EMA

    def __init__(
        self,
        classifier: str = 'ridge',
        folds: int = 5,
        class_weights: str | None = None,
        batch_size: int = 32,
    ):
        self.classifier = ClassifierSettings(classifier, class_weights)
        self.folds = FoldSettings(folds)
        self.batch_size = batch_size

    def before_train(self, runner) -> None:
        """Fit the last layer, unless the run is resumed.

        Raises an Error if the last layer of the head is not supported.
        """
        if runner.iter:
            return
        model = inner_model(runner.model)
        last_linear(model.head)  # raise before images are read
        pipeline = without_cache(runner.cfg.test_dataloader.dataset.pipeline)
        pipeline = last_view(pipeline)
        dataset = build_dataset(runner.cfg, 'train', pipeline=pipeline)
        with preserve_random_state():
            features, labels = self._features(model, dataset)
        accuracy = self._fit(model.head, features, labels)
        runner.logger.info(
            f'head initialized with a {self.classifier.name} classifier on '
            f'frozen features of {len(labels)} images: {accuracy:.1%} '
            f'accuracy in {self.folds.folds}-fold cross-validation'
        )

    @torch.no_grad()
    def _features(self, model, dataset) -> tuple[Tensor, Tensor]:
        """Compute head features (N, D) and labels (N,) of all images."""
        training = model.training
        model.eval()
        order, outputs, labels = range(len(dataset)), [], []
        for batch in batches(model, dataset, order, self.batch_size):
            outputs.append(model.extract_feat(batch.images))
            labels += batch.labels
        feats = tuple(map(torch.cat, zip(*outputs, strict=True)))
        update_bn([[feats]], model.head)  # no-op without BatchNorm
        features = model.head.pre_logits(feats)
        model.train(training)
        return features.float().cpu(), torch.tensor(labels)

    def _fit(self, head, features: Tensor, labels: Tensor) -> float:
        """Fit the last layer; return the cross-validated accuracy."""
        tested, (weight, bias) = fit_chosen(
            LabeledFeatures(features, labels, head.num_classes),
            self.classifier,
            self.folds,
        )
        temperature = tested.temperature
        set_last_linear(head, weight / temperature, bias / temperature)
        return float(tested.accuracy.mean())
