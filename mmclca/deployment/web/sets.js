// Copyright (c) mmclca contributors. Licensed under Apache-2.0.
// Prediction sets with a guarantee, as in mmclca.evaluation.conformal.

export const LEVEL = 95; // percent
const SMALLEST = 1e-30;

/* Return group, ratio of the own class, and top classes of stored photos. */
function readPhotos({ probabilities, labels, groups }, kept) {
  const bytes = Uint8Array.from(atob(probabilities), (x) => x.charCodeAt(0));
  const numbers = new Float32Array(bytes.buffer);
  const width = numbers.length / labels.length;
  const photos = [...labels.keys()].filter((i) => kept.includes(labels[i]));
  return photos.map((i) => {
    const p = (label) => Math.max(numbers[i * width + label], SMALLEST);
    const [best, second] = [...kept].sort((a, b) => p(b) - p(a));
    return { group: groups[i], ratio: p(labels[i]) / p(best),
      second: p(second) / p(best), isRight: best === labels[i] };
  });
}

/* Return the smallest ratio of classes in a set, or the problem. */
export function calibrate(sure, kept) {
  if (!sure) return {};
  const photos = readPhotos(sure, kept), sizes = new Map();
  photos.forEach(({ group }) => sizes.set(group, 1 + (sizes.get(group) ?? 0)));
  const needed = Math.ceil(LEVEL / (100 - LEVEL) - 1e-9);
  const units = say(`app.units.${sure.unit}`);
  if (sizes.size < needed) {
    const problem = say('app.too_few', { needed, units, number: sizes.size });
    return { problem };
  }
  const tested = photos.filter(({ ratio }) => ratio >= 0); // not NaN
  let covered = 0;
  for (const { group, ratio } of tested.sort((a, b) => b.ratio - a.ratio)) {
    covered += 1 / ((1 + sizes.size) * sizes.get(group));
    if (covered >= LEVEL / 100 - 1e-9) {
      return { limit: ratio, trust: measureTrust(tested, ratio) };
    }
  }
  return { problem: say('app.too_many_single', { units }) };
}

/* Count the right photos with one class in the set, and with several. */
function measureTrust(photos, limit) {
  const count = (isSure) => {
    const chosen = photos.filter(({ second }) => second < limit === isSure);
    const right = chosen.filter(({ isRight }) => isRight).length;
    return { right, number: chosen.length };
  };
  return { sure: count(true), check: count(false) };
}

/* Return the cells for a set of names: its answer, and all names. */
export function answerOf(names, coarse) {
  const all = names.join(' | ');
  const kinds = new Set(names.map((name) => coarse[name]));
  const [kind] = kinds.size === 1 && names.length > 1 ? kinds : [];
  return { sure_answer: kind ?? all, sure_set: all };
}
