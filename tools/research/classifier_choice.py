# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Rules by which ``fit`` weights its feature subsets, on fifteen datasets.

Each rule mixes the scores of ridge regressions on subsets of the features,
with three photos per class. ``choose_without`` takes the rule for a dataset
from the other fourteen.
"""

from dataclasses import dataclass
from itertools import product

import fit_networks
import fresh_datasets
import pandas as pd
import torch
import torch.nn.functional as F
from frozen import DATASETS, photos
from study.page_values import Report
from tables import kept, read_machine, select
from torch import Tensor
from training_subsets import draws, get_labels

from mmclca.apis.probe import LabeledFeatures
from mmclca.apis.probe.classifiers import ProbeData
from mmclca.apis.probe.leave_out import leave_out
from mmclca.apis.probe.likelihood import fit_temperature
from mmclca.apis.probe.settings import RIDGE, ProbeSetting
from mmclca.models.heads import get_feature_subsets

STUDY = 'classifier_choice'
NAMES = (*DATASETS, *fresh_datasets.NAMES)
FOLDS, REPEATS = 3, 5
MAX_LOSS = 4.0  # points below the best linear classifier of a user
FIRST, NINE = 'all CLS, pooled of nine layers', 'nine layers'
LATE, POOLED = 'late CLS', 'pooled of late layers'
SUBSETS = [(FIRST, LATE), (NINE, LATE)]
TRIPLES = [(FIRST, NINE, LATE), (FIRST, POOLED, LATE)]
# regularization strengths of the first subsets and of the last one
ALPHAS = [(0.3, 0.3), (0.1, 0.3), (0.1, 1.0), (0.03, 0.3), (0.03, 1.0)]
ALPHAS += [(0.01, 1.0)]
PRESENT_ALPHAS = (0.03, 1.0)
ACCURACY, ONE_ERROR = 'accuracy', 'accuracy, one standard error'
LIKELIHOOD, FIXED = 'likelihood, prior', 'fixed weight'
DEVIATIONS = (0.25, 0.3, 0.4, 0.5, 0.7, 100.0)  # 100: no prior
WEIGHTS = (0.0, 0.2, 0.5)  # fixed weights of late CLS
COLUMNS = ['subsets', 'alpha', 'late_alpha', 'rule', 'setting']
# the rules of `fit`: now, and before
PRESENT = (' + '.join(SUBSETS[0]), *PRESENT_ALPHAS, LIKELIHOOD, 0.4)
FORMER = (' + '.join(SUBSETS[0]), 0.3, 0.3, ONE_ERROR, 0.0)


@dataclass(frozen=True)
class ReadingScores:
    """Scores by ridge regressions on one feature subset.

    Args:
        left_out (dict[float, Tensor]): Scores (M, K) of photos in folds by
            regularization strength.
        tested (dict[float, Tensor]): Scores (T, K) of test photos.
    """

    left_out: dict[float, Tensor]
    tested: dict[float, Tensor]


@dataclass(frozen=True)
class Mixture:
    """Scores by the weights of the subsets, for one training set.

    Args:
        weights (Tensor): Weights (W, R) of R subsets, the default first.
        left_out (Tensor): Scores (W, M, K) of photos in folds.
        labels (Tensor): Their labels (M,).
        photos (int): Number of photos.
        accuracies (Tensor): Accuracies (W,) on test photos, in percent.
    """

    weights: Tensor
    left_out: Tensor
    labels: Tensor
    photos: int
    accuracies: Tensor


def values():
    """Return the values for the template."""
    networks = fit_networks.list_defaults()
    rows = kept(STUDY, measure, [(name_of(x), x) for x in networks])
    best, networks = best_alternatives(), [*rows.network.unique()]
    subsets_of_fit = select(rows, dict(subsets=PRESENT[0]))
    return dict(
        facts=read_machine(STUDY),
        networks=networks,
        present=PRESENT,
        former=FORMER,
        shown=(PRESENT[1:3], FORMER[1:3]),
        number_of_rules=len(subsets_of_fit) // len(networks),
        rules=lambda: summarize(rows, best),
        chosen=lambda: choose_without(subsets_of_fit, best),
        chosen_from_all=lambda: choose_without(rows, best),
        best=best,
        loss=lambda chosen, network: max(
            best[network][x['set']] - x['ours'][network] for x in chosen
        ),
    )


def name_of(network):
    """Return the columns that identify a default network."""
    return dict(network=fit_networks.get_name(network[0]))


def best_alternatives():
    """Return the accuracy of the best linear classifier of a user on the full
    network, by network and dataset."""
    users = Report.read().find_users()
    names = map(fit_networks.get_name, fit_networks.REDUCTIONS)
    return {name: users.loc[name].to_dict() for name in names}


def measure(file, variant):
    """Return a row per rule, with its accuracy per dataset."""
    probe = fit_networks.build_probe((file, variant))
    readings = get_readings(probe.model.head)
    accuracies = {}
    for name, dataset in photos(NAMES).items():
        labels, tested = get_labels(dataset)
        paths = dataset.path
        views = probe.views(paths[~tested.numpy()].tolist())[0]
        new = probe.features(paths[tested.numpy()].tolist())[0]
        training = labels[~tested]
        for drawn in draws(training, torch.ones(len(training)) > 0, 3):
            data = LabeledFeatures(
                views[drawn], training[drawn], 1 + int(labels.max())
            )
            rules = score_rules(data, readings, new, labels[tested])
            for rule, accuracy in rules:
                accuracies.setdefault((rule, name), []).append(accuracy)
    rules = dict.fromkeys(rule for rule, _ in accuracies)
    means = {key: round(sum(x) / len(x), 2) for key, x in accuracies.items()}
    return [
        dict(zip(COLUMNS, rule, strict=True))
        | {name: means[rule, name] for name in NAMES}
        for rule in rules
    ]


def get_readings(head):
    """Return the columns of the features by subset."""
    parts, (first, late) = (
        fit_networks.list_layer_columns(head),
        get_feature_subsets(head),
    )
    return {
        FIRST: first,
        NINE: parts[:9].flatten(),
        LATE: late,
        POOLED: parts[9:, 1:].flatten(),
    }


def score_rules(data, readings, new, labels):
    """Yield the accuracy on test photos, in percent, by rule."""
    checked = ProbeData.from_features(data, RIDGE)
    tests = [
        test
        for seed in range(REPEATS)
        for _, test in checked.splitter.folds(FOLDS, seed)
    ]
    scores = {
        name: score_reading(checked, columns, tests, new)
        for name, columns in readings.items()
    }
    pairs = [*product(SUBSETS, ALPHAS), *product(TRIPLES, [PRESENT_ALPHAS])]
    for subsets, (alpha, late_alpha) in pairs:
        parts = [scores[x] for x in subsets]
        alphas = [alpha] * (len(parts) - 1) + [late_alpha]
        weights = list_weights(len(parts))
        left_out, tested = (
            torch.einsum('wr,rmk->wmk', weights, torch.stack(x))
            for x in (
                [x.left_out[a] for x, a in zip(parts, alphas, strict=True)],
                [x.tested[a] for x, a in zip(parts, alphas, strict=True)],
            )
        )
        right = tested.argmax(2) == labels
        mixture = Mixture(
            weights,
            left_out,
            checked.labels[torch.cat([torch.as_tensor(x) for x in tests])],
            len(checked.labels),
            100 * right.double().mean(1),
        )
        key = (' + '.join(subsets), alpha, late_alpha)
        for rule, position in choose(mixture):
            yield (*key, *rule), float(mixture.accuracies[position])


def score_reading(checked, columns, tests, new):
    """Return the scores by regressions on some columns, per strength."""
    alphas = sorted({alpha for pair in ALPHAS for alpha in pair})
    rows = checked.rows.center_columns(columns)
    regressions, views = leave_out(rows, alphas), checked.features.shape[1]
    left_out = [
        regressions.scores(checked.find_rows(test))[:, ::views]
        for test in tests
    ]
    part = LabeledFeatures(
        checked.features[..., columns], checked.labels, checked.num_classes
    )
    fitted = ProbeData.from_features(part, RIDGE).fit(
        [ProbeSetting(x) for x in alphas]
    )
    folds = dict(zip(alphas, torch.cat(left_out, 1), strict=True))
    tested = [x.scores(new[:, columns]) for x in fitted]
    return ReadingScores(folds, dict(zip(alphas, tested, strict=True)))


def list_weights(number):
    """Return weights (W, R) in steps of 0.1 for two subsets, else 0.2, which
    sum to 1. The first row has the first subset only."""
    steps = 10 if number == 2 else 5
    counts = product(range(steps, -1, -1), repeat=number)
    rows = [x for x in counts if sum(x) == steps]
    return torch.tensor(rows, dtype=torch.float64) / steps


def choose(mixture):
    """Yield the position of the weights that each rule selects."""
    right = mixture.left_out.argmax(2) == mixture.labels
    yield (ACCURACY, 0.0), int(right.double().mean(1).argmax())
    yield (ONE_ERROR, 0.0), find_clear_gain(right, mixture.photos)
    likelihoods = torch.stack(
        [
            log_likelihood(x, mixture.labels, mixture.photos)
            for x in mixture.left_out
        ]
    )
    distances = mixture.weights[:, 1:].square().sum(1)
    for deviation in DEVIATIONS:
        posterior = likelihoods - distances / (2 * deviation**2)
        yield (LIKELIHOOD, deviation), int(posterior.argmax())
    for weight in WEIGHTS if mixture.weights.shape[1] == 2 else ():
        found = (mixture.weights[:, 1] - weight).abs().argmin()
        yield (FIXED, weight), int(found)


def find_clear_gain(right, number):
    """Return the position of the highest accuracy that is better than the
    first by one standard error, else 0."""
    gains = right.double() - right[0].double()
    spread = gains.square().mean(1) - gains.mean(1).square()
    # a single gained photo equals its standard error
    clear = gains.mean(1) > (spread / (number - 1)).sqrt() + 1e-9
    return int(torch.where(clear, gains.mean(1), 0).argmax())


def log_likelihood(scores, labels, number):
    """Return the smoothed log-likelihood of calibrated scores (M, K)."""
    temperature = fit_temperature(scores, labels, number)
    return -number * F.cross_entropy(
        scores / temperature, labels, label_smoothing=1 / (number + 2)
    )


def summarize(rows, best):
    """Return mean and largest loss per network by rule."""
    summary = {}
    for network, table in rows.groupby('network', sort=False):
        for key, row in table.set_index(COLUMNS).iterrows():
            losses = {x: best[network][x] - row[x] for x in NAMES}
            worst = max(losses, key=losses.get)
            summary.setdefault(key, {})[network] = dict(
                mean=row[[*NAMES]].mean(), loss=losses[worst], worst=worst
            )
    return summary


def choose_without(rows, best):
    """Choose a rule on all datasets but one, and test it on that one.

    The rule has the highest mean accuracy of both networks over the other
    datasets, among the rules with a loss of at most ``MAX_LOSS`` points on
    each. Return rows by dataset.
    """
    tables = {
        network: table.set_index(COLUMNS)[[*NAMES]]
        for network, table in rows.groupby('network', sort=False)
    }
    losses = pd.concat(
        {
            network: pd.Series(best[network])[[*NAMES]] - table
            for network, table in tables.items()
        }
    )
    chosen = []
    for name in NAMES:
        means = sum(x.drop(columns=name).mean(axis=1) for x in tables.values())
        largest = losses.drop(columns=name).max(axis=1)
        largest = largest.groupby(level=COLUMNS, sort=False).max()
        allowed = largest[largest <= MAX_LOSS].index
        rule = means[allowed].idxmax()
        ours = {x: tables[x].loc[rule, name] for x in tables}
        chosen.append(dict(set=name, rule=rule, ours=ours))
    return chosen
