// Copyright (c) mmclca contributors. Licensed under Apache-2.0.
// Prediction sets with a guarantee, as in mmclca.evaluation.conformal, and the
// classes that can occur here.

export const LEVEL = 95; // percent
const TICKS = `left out ${new URL('.', location)}`; // for hosts of more apps
const SMALLEST = 1e-30;

/* Return group and ratio of the stored photos of some classes. */
function ratiosOf({ probabilities, labels, groups }, kept) {
  const bytes = Uint8Array.from(atob(probabilities), (x) => x.charCodeAt(0));
  const numbers = new Float32Array(bytes.buffer);
  const width = numbers.length / labels.length;
  const photos = [...labels.keys()].filter((i) => kept.includes(labels[i]));
  return photos.map((i) => {
    const p = (label) => Math.max(numbers[i * width + label], SMALLEST);
    const most = kept.reduce((top, label) => Math.max(top, p(label)), 0);
    return { group: groups[i], ratio: p(labels[i]) / most };
  });
}

/* Return the smallest ratio of classes in a set, or the problem. */
export function calibrate(sure, kept) {
  if (!sure) return {};
  const photos = ratiosOf(sure, kept), sizes = new Map();
  photos.forEach(({ group }) => sizes.set(group, 1 + (sizes.get(group) ?? 0)));
  const needed = Math.ceil(LEVEL / (100 - LEVEL) - 1e-9);
  if (sizes.size < needed) return { problem: `At least ${needed} ` +
    `${sure.unit}s are needed, found ${sizes.size}.` };
  const tested = photos.filter(({ ratio }) => ratio >= 0); // not NaN
  let covered = 0;
  for (const { group, ratio } of tested.sort((a, b) => b.ratio - a.ratio)) {
    covered += 1 / ((1 + sizes.size) * sizes.get(group));
    if (covered >= LEVEL / 100 - 1e-9) return { limit: ratio };
  }
  return { problem: `Too many classes have one ${sure.unit}.` };
}

/* Return the cells for a set of names: its answer, and all names. */
export function answerOf(names, coarse) {
  const all = names.join(' | ');
  const kinds = new Set(names.map((name) => coarse[name]));
  const [kind] = kinds.size === 1 && names.length > 1 ? kinds : [];
  return { sure_answer: kind ?? all, sure_set: all };
}

function leftOut() { // names, before
  try {
    return JSON.parse(localStorage[TICKS] ?? '[]');
  } catch { // blocked
    return [];
  }
}

/* Follow the ticked boxes, one per class; at least two are kept. */
export function followTicks(names, boxes, show) {
  const saved = leftOut();
  boxes.forEach((box, i) => { box.checked = !saved.includes(names[i]); });
  const update = () => {
    const kept = [...names.keys()].filter((i) => boxes[i].checked);
    show(kept.length < 2 ? [...names.keys()] : kept, kept.length);
  };
  update();
  return (change = () => {}) => { // after a click
    boxes.forEach(change);
    const others = names.filter((_, i) => !boxes[i].checked);
    try {
      localStorage.setItem(TICKS, JSON.stringify(others));
    } catch { // blocked or full: the ticks end with this page
    }
    update();
  };
}
