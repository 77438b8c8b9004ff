# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import torch
from mmengine.hooks import Hook
from torch import Tensor, nn
from torch.optim.swa_utils import update_bn

from mmclca.apis.probe.classifiers import check_classifier
from mmclca.apis.probe.folds import fit_chosen
from mmclca.datasets.batches import batches, dataset_of, without_cache
from mmclca.models import last_linear, set_last_linear
from mmclca.registry import HOOKS
from mmclca.utils.random_state import same_random_state
from mmclca.utils.wrappers import inner_model


def last_view(pipeline: list[dict]) -> list[dict]:
    """Return a pipeline in which the last choice of each ``TestTimeAug`` is
    made."""
    steps = []
    for step in pipeline:
        several = step['type'] == 'TestTimeAug'
        choices = step['transforms'] if several else [[step]]
        steps += [choice[-1] for choice in choices]
    return steps


@HOOKS.register_module()
class ProbeInitHook(Hook):
    """Start the head from a classifier in closed form on frozen features.

    Before the first iteration, the training images go through the network
    once, as at test time, and the last layer of the head is fitted to what
    it reads of them; strength and temperature are chosen by folds of these
    images. A head with BatchNorm, such as ``CLAHead``, gets the statistics
    of these images first. A run that is resumed is left as it is. Images of
    the training are not changed by it, nor random numbers. Where a test
    averages over several views of an image, the last one is read.

    Args:
        classifier (str): 'ridge' or 'logistic', see
            :func:`mmclca.apis.probe.fit_linear`. Defaults to 'ridge'.
        folds (int): Into how many parts to cut the images. Defaults to 5.
        class_weights (str, optional): 'balanced' for classes that count
            alike whatever their number of images. Defaults to None.
        batch_size (int): Images at a time. Defaults to 32.

    Raises:
        ValueError: If there is no such classifier, or it is no linear one.
    """

    # before hooks that copy the model, such as EMA
    priority = 'VERY_HIGH'

    def __init__(
        self,
        classifier: str = 'ridge',
        folds: int = 5,
        class_weights: str | None = None,
        batch_size: int = 32,
    ):
        check_classifier(classifier)
        self.classifier = classifier
        self.folds = folds
        self.class_weights = class_weights
        self.batch_size = batch_size

    def before_train(self, runner) -> None:
        """Fit the last layer; see the class.

        Args:
            runner (Runner): The runner.

        Raises:
            ValueError: If the last layer of the head is not supported.
        """
        if runner.iter:
            return
        model = inner_model(runner.model)
        last_linear(model.head)  # fails before images are read
        pipeline = without_cache(runner.cfg.test_dataloader.dataset.pipeline)
        pipeline = last_view(pipeline)
        dataset = dataset_of(runner.cfg, 'train', pipeline=pipeline)
        with same_random_state():
            features, labels = self._features(model, dataset)
        accuracy = self._fit(model.head, features, labels)
        runner.logger.info(
            f'head initialized with a {self.classifier} classifier on frozen '
            f'features of {len(labels)} images: {100 * accuracy:.1f} % '
            f'accuracy in {self.folds}-fold cross-validation'
        )

    @torch.no_grad()
    def _features(self, model, dataset) -> tuple[Tensor, Tensor]:
        """Compute features (N, D) of all images, and their labels (N,)."""
        training = model.training
        model.eval()
        order, found, labels = range(len(dataset)), [], []
        for batch in batches(model, dataset, order, self.batch_size):
            found.append(model.extract_feat(batch.images))
            labels += batch.labels
        feats = tuple(map(torch.cat, zip(*found, strict=True)))
        update_bn([[feats]], model.head)  # of BatchNorm, if there is one
        features = model.head.pre_logits(feats)
        model.train(training)
        return features.float().cpu(), torch.tensor(labels)

    def _fit(self, head: nn.Module, features: Tensor, labels: Tensor) -> float:
        """Fit the last layer; the accuracy in the folds."""
        tested, (weight, bias) = fit_chosen(
            features,
            labels,
            head.num_classes,
            self.classifier,
            class_weights=self.class_weights,
            folds=self.folds,
        )
        temperature = tested.temperature
        set_last_linear(head, weight / temperature, bias / temperature)
        return float(tested.accuracy.mean())
