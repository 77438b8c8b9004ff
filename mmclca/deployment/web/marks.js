// Copyright (c) mmclca contributors. Licensed under Apache-2.0.
// Mark answers as correct or wrong, and measure the accuracy here.

import { make, percent, worded } from './dom.js';
import { model } from './model.js';

const LAST = 100; // marked answers in the accuracy
const QUANTILE = 1.959964; // of the normal distribution, for 95%

/* Return the class of a plant by its mark; undefined without. */
export function labelOf({ verdict, correction, known, pred_class: name }) {
  if (verdict === 'wrong') return correction || undefined;
  return verdict === 'correct' && known !== 'no' ? name : undefined;
}

/* Return the bounds of the Wilson interval for a share of a number. */
export function interval(share, number) {
  const square = QUANTILE ** 2 / number;
  const middle = (share + square / 2) / (1 + square);
  const half = Math.sqrt(square * (share * (1 - share) + square / 4)) /
    (1 + square);
  return [Math.max(middle - half, 0), Math.min(middle + half, 1)];
}

/* Return the accuracy among the last marked answers of this model. */
export function describeAccuracy(rows) {
  const marked = rows.filter(({ verdict, model: digest }) => verdict &&
    digest === model.facts?.digest).slice(-LAST);
  if (!marked.length) return say('app.not_marked');
  const right = marked.filter(({ verdict }) => verdict === 'correct').length;
  const share = right / marked.length;
  const [low, high] = interval(share, marked.length).map(percent);
  return say('app.accuracy_here', { right, number: marked.length,
    share: percent(share), low, high });
}

/* Return the class that a text names, or the text. */
function findClass(text) {
  const spelled = (name) => worded(name).toLowerCase();
  const name = text.trim();
  return model.facts.classes.find((other) =>
    spelled(other) === spelled(name)) ?? name;
}

/* Return elements to mark an answer; save takes the changed values. */
export function makeMarks(row, save) {
  const kind = row.known === 'no' ? 'unknown' : 'named';
  const buttons = ['correct', 'wrong'].map((verdict) => make('button',
    { textContent: say(`app.mark.${kind}_${verdict}`),
      onclick: () => mark(row.verdict === verdict ? '' : verdict) }));
  const name = makeField('correction', worded(row.correction ?? ''),
    (text) => save({ correction: findClass(text) }));
  name.querySelector('input').setAttribute('list', 'class-names');
  const show = () => {
    buttons.forEach((button, i) => {
      button.ariaPressed = row.verdict === ['correct', 'wrong'][i];
    });
    name.hidden = row.verdict !== 'wrong';
  };
  const mark = (verdict) => {
    row.verdict = verdict;
    show();
    save({ verdict });
    if (verdict === 'wrong') name.querySelector('input').focus();
  };
  show();
  const plot = makeField('plot', row.plot, (text) => save({ plot: text }));
  const note = makeField('note', row.note, (text) => save({ note: text }));
  return make('div', { className: 'marks' }, ...buttons, name, plot, note);
}

function makeField(kind, value = '', save) {
  // another value than the default one is being typed
  const input = make('input', { defaultValue: value, type: 'text',
    onchange: () => {
      input.defaultValue = input.value;
      save(input.value.trim());
    } });
  return make('label', {}, `${say(`app.mark.${kind}`)} `, input);
}
