// Copyright (c) mmclca contributors. Licensed under Apache-2.0.
// Turn model outputs into the answer for a plant. Scores are named as in
// tools/deployment/infer_onnx.py.

import { model } from './model.js';
import { combineLogits, energyOf, meanScores } from './plant.js';
import { answerOf } from './sets.js';

export const TOP = [1, 2, 3, 4, 5]; // classes per answer
const SCORES = ['max_softmax', 'energy', 'nearest'];
const rounded = (score) => Math.round(score * 1e6) / 1e6;

/* Return the cells for the outputs of one or several photos of a plant. */
export function answer(outputs) {
  const { facts, kept, rule } = model;
  const logits = combineLogits(outputs, facts.dependence);
  const energy = energyOf(logits);
  const all = logits.map((x) => Math.max(Math.exp(x - energy), 1e-30));
  const row = flag(meanScores(outputs));
  const total = kept.reduce((before, i) => before + all[i], 0);
  const scores = all.map((x) => x / total); // of the classes that can occur
  const best = [...kept].sort((a, b) => scores[b] - scores[a]);
  const within = best.filter((i) => scores[i] / scores[best[0]] >= rule.limit);
  if (rule.limit && outputs.length === 1) { // sets are of single photos
    Object.assign(row, answerOf(within.map((i) => facts.classes[i]),
      facts.sure.coarse_classes));
  }
  for (const i of TOP.slice(0, best.length)) {
    row[`label_${i}`] = best[i - 1];
    row[`name_${i}`] = facts.classes[best[i - 1]];
    row[`score_${i}`] = rounded(scores[best[i - 1]]);
  }
  const isUnknown = row.known === 'no'; // sorted, these come first
  const trust = within.length === 1 ? 'sure' : 'check';
  return { result: isUnknown ? 'unknown' : row.name_1,
    confidence: isUnknown ? 0 : row.score_1,
    trust: isUnknown ? 'unknown' : trust,
    pred_class: row.name_1, pred_score: row.score_1, ...row };
}

function flag(scores) {
  const { threshold } = model.facts;
  if (!threshold) return {};
  const score = scores[SCORES.indexOf(threshold.score)];
  const known = score >= threshold.threshold ? 'yes' : 'no';
  return { known, known_score: rounded(score) };
}

/* Return why a plant is flagged as unknown. */
export function describeUnknown({ known_score: score }) {
  const { score: kind, threshold } = model.facts.threshold;
  const key = kind === 'nearest' ? 'similarity' : 'score';
  return say(`app.below.${key}`, { score: score.toFixed(3),
    threshold: threshold.toFixed(3) });
}
