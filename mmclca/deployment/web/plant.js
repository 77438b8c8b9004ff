// Copyright (c) mmclca contributors. Licensed under Apache-2.0.
// Combine the model outputs for several photos of one plant, as
// mmclca.evaluation.fusion and mmclca.apis.plants.

const mean = (numbers) => numbers.reduce((a, b) => a + b, 0) / numbers.length;
const largest = (numbers) => numbers.reduce((a, b) => Math.max(a, b));

/* Return the logarithm of the sum of exponentials. */
export function energyOf(logits) {
  const most = largest(logits);
  return most + Math.log(logits.reduce((total, x) =>
    total + Math.exp(x - most), 0));
}

/* Return class scores before softmax from those of several photos. */
export function combineLogits(photos, dependence) {
  const effective = photos.length / (1 + (photos.length - 1) * dependence);
  return Array.from(photos[0].logits, (_, i) =>
    effective * mean(photos.map(({ logits }) => logits[i])));
}

/* Return the mean max_softmax, energy and nearest, which detect unknowns. */
export function meanScores(photos) {
  const scores = photos.map(({ logits, nearest }) => {
    const energy = energyOf(logits);
    return [Math.exp(largest(logits) - energy), energy, nearest];
  });
  return scores[0].map((_, i) => mean(scores.map((x) => x[i])));
}
